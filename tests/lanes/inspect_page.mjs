// The list of `inspect view` and one sample's messages in headless Chromium.
// node inspect_page.mjs MODULES CHROMIUM SCREENSHOT LIST SAMPLE
import { createRequire } from "node:module";
const [modules, chromium, screenshot, list, sample] = process.argv.slice(2);
const puppeteer = createRequire(modules + "/")("puppeteer-core");
const browser = await puppeteer.launch({
  executablePath: chromium, headless: "shell", args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(String(error)));
page.on("response", (answer) => answer.status() >= 500 && problems.push(answer.url()));
const text = () => page.evaluate(() => document.body.innerText);
await page.goto(list, { waitUntil: "networkidle0" });
await page.waitForFunction(() => document.body.innerText.includes("counterprior/"));
const listed = await text();
await page.goto(sample, { waitUntil: "networkidle0" });
await page.waitForFunction(() => [...document.images].some((image) => image.naturalWidth));
const images = await page.evaluate(() =>
  [...document.images].map((image) => [image.naturalWidth, image.naturalHeight]));
await page.screenshot({ path: screenshot });
console.log(JSON.stringify({ list: listed, sample: await text(), images, problems }));
await browser.close();
