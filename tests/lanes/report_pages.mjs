// Every page of a report on a phone and a desktop, light and dark: how wide it is, what axe finds with
// all folds open, and which marks are torn or out of place; then what its buttons give. node report_pages.mjs MODULES CHROMIUM SITE
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
const [modules, chromium, site] = process.argv.slice(2);
const puppeteer = createRequire(modules + "/")("puppeteer-core");
const browser = await puppeteer.launch({
  executablePath: chromium, headless: "shell", args: ["--no-sandbox", "--disable-gpu"],
});
const problems = [];
const open = async (name, width, theme, bypass = false) => {
  const page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (line) => line.type() === "error" && problems.push(line.text()));
  await page.setBypassCSP(bypass);  // only for axe, which is no script of the page
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.setViewport({ width, height: 850, isMobile: width < 500, hasTouch: width < 500 });
  await page.goto(`file://${site}/${name}`);
  return page;
};
const misplaced = () => {
  const torn = [...document.querySelectorAll(".items td b")]
    .filter((label) => /^\S+$/.test(label.textContent) && label.getClientRects().length > 1);
  const middle = (part) => { const box = part.getBoundingClientRect(); return (box.left + box.right) / 2; };
  const tables = [...document.querySelectorAll(".overview")].filter((table) => table.tHead.offsetWidth > 99);
  const off = tables.flatMap((table) => [...table.tHead.rows[0].cells].flatMap((head, column) => {
    const number = head.querySelector(".numbers small");
    const zero = table.tBodies[0].rows[0].cells[column].querySelector(".zero");
    return number?.offsetWidth && zero && Math.abs(middle(number) - middle(zero)) > 1
      ? [number] : [];
  }));
  return [...torn, ...off].map((part) => part.outerHTML);
};
const pages = [];
for (const name of readdirSync(site).filter((file) => file.endsWith(".html"))) {
  for (const width of [390, 1280]) {
    for (const theme of ["light", "dark"]) {
      const page = await open(name, width, theme, true);
      await page.evaluate(() =>
        document.querySelectorAll("main details").forEach((fold) => { fold.open = true; }));
      const needed = await page.evaluate(() => document.documentElement.scrollWidth);
      await page.addScriptTag({ path: `${modules}/axe-core/axe.min.js` });
      const faults = await page.evaluate(async () => (await axe.run()).violations
        .map((fault) => [fault.impact, fault.id, fault.nodes[0].html.slice(0, 200)]));
      const wrong = await page.evaluate(misplaced);
      if (width === 1280) {
        await page.setViewport({ width: 720, height: 850 });  // a sheet of paper
        await page.emulateMediaType("print");
        wrong.push(...await page.evaluate(misplaced));
      }
      pages.push([name, width, theme, needed, faults, wrong]);
      await page.close();
    }
  }
}

let page = await open("index.html", 1280, "light");
const folder = mkdtempSync(join(tmpdir(), "report-"));
const session = await browser.target().createCDPSession();
await session.send("Browser.setDownloadBehavior",
  { behavior: "allow", downloadPath: folder, eventsEnabled: true });
const saved = async (text) => {
  const done = new Promise((resolve) => session.on("Browser.downloadProgress",
    (progress) => progress.state === "completed" && resolve()));
  await page.evaluate((name) => [...document.querySelectorAll(".tools button")]
    .find((button) => button.textContent === name).click(), text);
  await done;
  const file = readdirSync(folder).find((name) => name.endsWith({ CSV: ".csv", LaTeX: ".tex" }[text]));
  return readFileSync(join(folder, file), "utf8");
};
const csv = await saved("CSV");
const latex = await saved("LaTeX");
await page.evaluate(() => {  // the clipboard of a headless browser is nobody's
  Object.defineProperty(navigator, "clipboard",
    { value: { writeText: async (text) => { window.copied = text; } } });
});
await page.evaluate(() => [...document.querySelectorAll(".tools button")]
  .find((button) => button.textContent.startsWith("Copy")).click());
const markdown = await page.evaluate(() => window.copied);
await page.click(".cell-score .value");
const meaning = await page.$eval(".card-help:popover-open", (card) => card.textContent);

page = await open("t2i_homogenization.html", 1280, "light");
const rows = await page.$eval("table.all", (table) =>
  [[...table.tBodies[0].rows].filter((row) => !row.hidden).length, table.tBodies[0].rows.length]);

page = await open("gallery-run.html", 390, "light");
await page.waitForSelector(".items img");
await page.$eval(".items img", (image) => image.closest("button").click());
await page.waitForFunction(() => [...document.querySelectorAll(".large img")]
  .every((image) => image.complete && image.naturalWidth));
const large = [await page.$eval(".large .whole img", (image) => image.naturalWidth),
  await page.$eval(".large td img", (image) => image.naturalWidth)];
const mirrored = await page.$$eval(".large .mirrored", (images) => images.length);
console.log(JSON.stringify(
  { problems, pages, csv, latex, markdown, meaning, rows, large, mirrored }));
await browser.close();
