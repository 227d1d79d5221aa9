// Labels two pictures by keyboard in headless Chromium, reloads, and writes what it saw.
// node audit_page.mjs URL MODULES CHROMIUM SCREENSHOT
import { createRequire } from "node:module";
const [url, modules, chromium, screenshot] = process.argv.slice(2);
const puppeteer = createRequire(modules + "/")("puppeteer-core");
const browser = await puppeteer.launch({
  executablePath: chromium, headless: "shell", args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
await page.setViewport({ width: 1100, height: 850 });
const problems = [];
page.on("pageerror", (error) => problems.push(String(error)));
page.on("console", (line) => line.type() === "error" && problems.push(line.text()));
const text = (selector) => page.$eval(selector, (element) => element.textContent);
const begin = async () => {
  await page.goto(url);
  await page.type("#name", "ann");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#work:not([hidden])");
};
await begin();
const counts = [await text("#count")];
const prompts = [await text("#texts dd")];
for (const key of ["1", "3"]) {
  await page.keyboard.press(key);
  await page.waitForFunction((old) => document.querySelector("#count").textContent !== old, {}, counts.at(-1));
  counts.push(await text("#count"));
  prompts.push(await text("#texts dd"));
}
await begin();
counts.push(await text("#count"));
await page.waitForFunction(() => [...document.images].every((image) => image.complete && image.naturalWidth));
await page.screenshot({ path: screenshot });
console.log(JSON.stringify({ counts, prompts, problems, body: await text("body") }));
await browser.close();
