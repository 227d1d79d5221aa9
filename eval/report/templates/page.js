"use strict";
// Tables can be sorted, filtered, downloaded and copied. Without this every page shows all it has.
(() => {
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  // What a cell says, without its plot and its explanations.
  const plain = (cell) => {
    const copy = cell.cloneNode(true);
    for (const part of copy.querySelectorAll("svg, .help, [popover], .hidden")) part.remove();
    for (const part of copy.querySelectorAll("small")) part.prepend(" ");
    return copy.textContent.trim().replace(/\s+/g, " ");
  };

  const numbers = (cell) => [...cell.querySelectorAll("data")].map((data) => data.value);
  const marksOf = (element) => [...new Set([...element.querySelectorAll("sup[title]")].map((mark) =>
    `${mark.textContent} ${mark.title}`))];
  // Rows with their marks in a last column, if there are any.
  const withMarks = (head, rows, elements) => elements.some((element) => marksOf(element).length)
    ? [[...head, "marks"], ...rows.map((row, n) => [...row, marksOf(elements[n]).join("; ")])]
    : [head, ...rows];
  const rowsOf = (table) => [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const columnsOf = (table) =>
    [...table.tHead.rows[0].cells].filter((head) => !head.hidden && !("plot" in head.dataset));
  const nameOf = (head) => head.dataset.head || plain(head);

  // Rows of text as they are seen, a score with its interval in one cell.
  const seen = (table) => {
    const columns = columnsOf(table);
    const cell = (td) => {
      const scores = [...td.querySelectorAll(".cell-score")];
      if (!scores.length) return plain(td);
      return scores.map((one) => {
        const [value, ends, rank] = [".value", ".ends", ".rank"].map((part) =>
          plain(one.querySelector(part)));
        return `${value} [${ends.replace(" to ", ", ")}] ${rank}`;
      }).join("; ");
    };
    return [columns.map(nameOf),
      ...rowsOf(table).map((row) => columns.map((head) => cell(row.cells[head.cellIndex])))];
  };

  // Rows with every digit, an interval in two columns; of the overview a row for each score.
  const exact = (table) => {
    if ("long" in table.dataset) {
      const head = ["generator", "suite", "judge", "score", "value", "low", "high", "n", "rank"];
      const scores = rowsOf(table).flatMap((row) =>
        [...row.querySelectorAll("td:not([hidden]) .cell-score")]);
      const rows = scores.map((one) => {
        const field = (name) => numbers(one.querySelector(`[data-field="${name}"]`));
        const [low = "", high = ""] = field("interval");
        const { suite, judge, score, rank } = one.dataset;
        return [one.closest("tr").dataset.generator, suite, judge, score, field("value")[0] ?? "",
          low, high, field("n")[0], rank];
      });
      return withMarks(head, rows, scores.map((one) => one.querySelector(".value")));
    }
    const columns = columnsOf(table);
    const split = (head) => "ends" in head.dataset;
    const first = columns.flatMap((head) =>
      split(head) ? [`${nameOf(head)} low`, `${nameOf(head)} high`] : [nameOf(head)]);
    const rows = rowsOf(table).map((row) => columns.flatMap((head) => {
      const cell = row.cells[head.cellIndex];
      const values = numbers(cell);
      if (split(head)) return values.length ? values : ["", ""];
      return cell.classList.contains("n") && values.length === 1 ? values : [plain(cell)];
    }));
    return withMarks(first, rows, rowsOf(table));
  };

  const asCsv = (table) => exact(table).map((row) => row.map((text) =>
    /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text).join(",")).join("\n") + "\n";

  const asMarkdown = (table) => {
    const [head, ...rows] = seen(table).map((row) =>
      row.map((text) => text.replace(/[\\|<>*_`\[\]]/g, "\\$&")));
    const line = (row) => `| ${row.join(" | ")} |`;
    const sides = columnsOf(table).map((th) => th.classList.contains("n") ? "---:" : "---");
    return [line(head), line(sides), ...rows.map(line),
      ...marksOf(table).map((mark) => `\n${mark}`)].join("\n") + "\n";
  };

  const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "–": "--", "−": "$-$", "↓": "$\\downarrow$", "↑": "$\\uparrow$" };
  const asLatex = (table) => {
    const [head, ...rows] = seen(table).map((row) =>
      row.map((text) => text.replace(/[\\~^–−↓↑&%$#_{}]/g, (sign) => TEX[sign] ?? `\\${sign}`)));
    const line = (row) => `${row.join(" & ")} \\\\`;
    const sides = columnsOf(table).map((th) => th.classList.contains("n") ? "r" : "l").join("");
    return ["% needs \\usepackage{booktabs}", `\\begin{tabular}{${sides}}`, "\\toprule", line(head),
      "\\midrule", ...rows.map(line), "\\bottomrule", "\\end{tabular}",
      ...marksOf(table).map((mark) => `\\par ${mark.replaceAll("%", "\\%")}`)].join("\n") + "\n";
  };

  const download = (name, text, type) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  const addButtons = (table, place) => {
    const name = table.dataset.name;
    const said = make("span", { role: "status", className: "said" });
    const button = (text, action, done) => {
      const made = make("button", { type: "button", textContent: text });
      made.addEventListener("click", async () => {
        await action();
        said.textContent = done;
        setTimeout(() => { said.textContent = ""; }, 2000);
      });
      return made;
    };
    place.append(
      button("CSV", () => download(`${name}.csv`, asCsv(table), "text/csv"), "saved"),
      button("LaTeX", () => download(`${name}.tex`, asLatex(table), "text/plain"), "saved"),
      button("Copy as Markdown", () => copy(asMarkdown(table)), "copied"), said);
  };

  const sortKey = (cell) => {
    const value = numbers(cell)[0] ?? (/^#?\d/.test(plain(cell)) ? parseFloat(plain(cell).slice(
      plain(cell).startsWith("#") ? 1 : 0)) : undefined);
    return value === undefined ? plain(cell).toLowerCase() : Number(value);
  };

  const addSorting = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    for (const head of heads) {
      if ("plot" in head.dataset) continue;
      const button = make("button", { type: "button", className: "sort" });
      const label = head.querySelector("span:not(.hidden)") ?? head.firstChild;
      if (head.querySelector("a")) {
        head.append(button);  // the name is a link already
        button.classList.add("icon");
        button.textContent = "⇅";
        button.setAttribute("aria-label", `⇅ sort by ${nameOf(head)}`);
      } else {
        label.replaceWith(button);
        button.append(label);
      }
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const place = head.cellIndex;
        const rows = [...table.tBodies[0].rows].map((row) => [sortKey(row.cells[place]), row]);
        const kind = (key) => (typeof key === "number" ? 0 : 1);  // numbers, then texts
        rows.sort(([a], [b]) => kind(a) - kind(b)
          || (up ? 1 : -1) * (kind(a) ? a.localeCompare(b) : a - b));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    }
  };

  const WHOLE = "whole config";
  const kindOf = (row, name) => {
    const value = (name === "judge" && row.dataset.of) || (row.dataset[name] ?? "");
    if (name !== "group") return value;
    return value === "all" ? WHOLE : `by ${value.split("=")[0].replaceAll("_", " ")}`;
  };

  const choices = new Map();  // table -> the form that filters it
  const applyFilters = (table) => {
    const form = choices.get(table);
    const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
    const text = form.querySelector("input[type=search]")?.value.trim().toLowerCase() ?? "";
    const small = form.querySelector("input[type=checkbox]")?.checked ?? true;
    let shown = 0;
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      row.hidden = chosen.some((select) => kindOf(row, select.name) !== select.value)
        || (text && !plain(row).toLowerCase().includes(text))
        || (!small && "few" in row.dataset)
        || (judge && row.dataset.of !== undefined && row.dataset.of !== judge);
      shown += !row.hidden;
    }
    form.querySelector(".found").textContent = `${shown} of ${rows.length} rows`;
  };

  const addFilters = (table, place) => {
    const names = (table.dataset.filter ?? "").split(" ").filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    if (!names.length || rows.length < (names[0] === "generator" ? 13 : 4)) return;
    const form = make("form", { className: "filters" });
    form.setAttribute("aria-label", "Filters of the table");
    for (const name of names) {
      const values = [...new Set(rows.map((row) => kindOf(row, name)))];
      if (values.length < 2 || name === "generator") continue;
      const select = make("select", { name }, make("option", { value: "", textContent: "all" }),
        ...values.map((value) => make("option", { value, textContent: value.replaceAll("_", " ") })));
      if (name === "group") select.value = WHOLE;
      form.append(make("label", {}, `${name} `, select));
    }
    form.append(make("label", {}, "text ", make("input", { type: "search" })));
    const few = rows.filter((row) => "few" in row.dataset).length;
    if (few) {
      form.append(make("label", {}, make("input", { type: "checkbox" }),
        " also groups of fewer than 10 items"));
    }
    form.append(make("span", { className: "found", role: "status" }));
    form.addEventListener("input", () => applyFilters(table));
    form.addEventListener("submit", (event) => event.preventDefault());
    choices.set(table, form);
    place.before(form);
  };

  // One judge at a time, on the whole page.
  let judge = "";
  const parts = [...document.querySelectorAll("[data-of]")];
  const judges = [...new Set(parts.map((part) => part.dataset.of))];
  const chooseJudge = () => {
    for (const part of parts) {
      if (!choices.has(part.closest("table")) || part.tagName !== "TR") {
        part.hidden = Boolean(judge) && part.dataset.of !== judge;
      }
    }
    choices.forEach((form, table) => applyFilters(table));
  };
  const addJudges = (place) => {
    const field = make("fieldset", { className: "judges" }, make("legend", { textContent: "Judge" }));
    for (const name of ["", ...judges]) {
      const input = make("input", { type: "radio", name: "judge", value: name, checked: !name });
      input.addEventListener("change", () => { judge = name; chooseJudge(); });
      field.append(make("label", {}, input, ` ${name || "all"}`));
    }
    place.before(field);
  };

  for (const table of document.querySelectorAll("table[data-name]")) {
    const heads = [...table.tHead.rows[0].cells].map((head) => nameOf(head));
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, number) => { cell.dataset.label = heads[number]; });
    }
    const place = table.closest(".scroll") ?? table;
    const tools = make("div", { className: "tools" });
    addButtons(table, tools);
    place.before(tools);
    addFilters(table, tools);
    if (table.tBodies[0].rows.length > 2) addSorting(table);
  }
  if (judges.length > 1) {
    addJudges(document.querySelector(".choose"));
  }
  choices.forEach((form, table) => applyFilters(table));

  // A link into a fold opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target?.closest?.("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    target?.scrollIntoView?.();
  };
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
})();
