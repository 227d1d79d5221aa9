// Labels by keyboard in headless Chromium, reloads, and writes what it saw.
// node audit_page.mjs URL MODULES CHROMIUM SCREENSHOT KEYS; an entry of KEYS longer than one key is a note.
import { createRequire } from "node:module";
const [url, modules, chromium, screenshot, keys] = process.argv.slice(2);
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
const main = () => page.$eval("main", (element) => element.outerHTML);
const begin = async () => {
  await page.goto(url);
  await page.type("#name", "ann");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#work:not([hidden])");
};
await begin();
const players = () => page.$$("#images video");
const known = await players();
const counts = [await text("#count")];
const shown = [await text("#texts")];
const clips = {};
for (const key of JSON.parse(keys)) {
  const before = await main();
  if (key.length > 1) {
    await page.type("#note", key);
    await Promise.all([
      page.waitForResponse((answer) => answer.url().endsWith("/click")),
      page.$eval("#note", (note) => note.blur()),
    ]);
    await page.click("#skip");
  } else {
    await page.keyboard.press(key);
  }
  await page.waitForFunction((old) => document.querySelector("main").outerHTML !== old, {}, before);
  counts.push(await text("#count"));
  shown.push(await text("#texts"));
  if (counts.length === 2 && known.length) clips.kept = await known[0].evaluate((one) => one.isConnected);
}
await begin();
counts.push(await text("#count"));
await page.waitForFunction(() => [...document.images].every((image) => image.complete && image.naturalWidth));
const [player, ...more] = await players();
if (player) {
  await page.waitForFunction(() => document.querySelector("#images video").readyState === 4);
  const time = await player.evaluate((one) => one.currentTime);
  await page.waitForFunction((old) => document.querySelector("#images video").currentTime !== old, {}, time);
  Object.assign(clips, { players: 1 + more.length, ready: true, moves: true });
}
await page.click("#others summary");
await page.waitForSelector("#agreement dd");
await page.screenshot({ path: screenshot });
console.log(JSON.stringify({ counts, shown, clips, problems, body: await text("body") }));
await browser.close();
