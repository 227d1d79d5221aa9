"use strict";
// Texts come from models: they are only ever set as textContent, never as markup.
(() => {
  const PAGE = 48;
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.querySelector(".filters");
  const list = document.querySelector(".pictures");
  const found = document.querySelector(".found");
  const pagers = [...document.querySelectorAll(".pager")];
  const flagNames = Object.fromEntries(data.filters.map((f) => [f.flag, f.name]));
  let page = 0;

  for (const picture of data.pictures) {
    const answers = picture.answers.flat().map((a) => `${a.label} ${a.raw}`);
    picture.searched = [picture.id, picture.prompt, ...answers].join("\n").toLowerCase();
  }

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const groupsOf = (picture) =>
    Object.entries(picture.groups).flatMap(([name, values]) => values.map((v) => `${name}: ${v}`));

  const wanted = () => {
    const choice = Object.fromEntries(new FormData(form));
    const text = (choice.text || "").trim().toLowerCase();
    return data.pictures.filter(
      (p) =>
        (!choice.flag || p.flags.includes(choice.flag)) &&
        (!choice.variant || p.variant === choice.variant) &&
        (!choice.group || groupsOf(p).includes(choice.group)) &&
        (!text || p.searched.includes(text)),
    );
  };

  const answerRow = (answer, original, judge) => {
    const differs = answer.probe !== "original" && original && original.label !== answer.label;
    const sure = answer.probability == null ? "" : ` ${(100 * answer.probability).toFixed(0)} %`;
    const asked = [answer.question, answer.probe === "original" ? "" : answer.probe];
    return make(
      "tr", { className: differs ? "differs" : "" },
      make("td", { textContent: data.judges.length > 1 ? String(judge + 1) : "" }),
      make("td", { textContent: asked.filter(Boolean).join(", ") || "picture" }),
      make("td", {}, make("b", { textContent: (differs ? "≠ " : "") + answer.label + sure }),
        answer.raw && answer.raw !== answer.label ? make("q", { textContent: answer.raw }) : ""),
    );
  };

  const thumbnail = (file, alt, absent) => file
    ? make("img", { src: file, loading: "lazy", decoding: "async", alt })
    : make("div", { className: "absent", textContent: absent });

  const card = (picture) => {
    const result = thumbnail(picture.thumbnail, `picture drawn for: ${picture.prompt}`,
      picture.status === "made" ? "unreadable picture" : `no picture: ${picture.status}`);
    const named = (image, name) =>
      make("figure", {}, image, make("figcaption", { textContent: name }));
    const image = picture.edit
      ? make("div", { className: "edit" },
          named(thumbnail(picture.source, "picture before the edit", "no source"), "source"),
          named(result, "result"))
      : result;
    const rows = picture.answers.flatMap((part, judge) =>
      part.map((a) => answerRow(
        a, part.find((o) => o.question === a.question && o.probe === "original"), judge)));
    return make(
      "li", { id: picture.id },
      image,
      make("p", { className: "prompt", textContent: picture.prompt }),
      make("p", { className: "facts", textContent:
        [picture.variant, ...groupsOf(picture), `seed ${picture.seed}`].join(" · ") }),
      make("p", { className: "flags" },
        ...picture.flags.map((flag) => make("span", { textContent: flagNames[flag] }))),
      rows.length ? make("table", {}, make("tbody", {}, ...rows))
        : make("p", { className: "undefined", textContent: "not judged" }),
      make("p", { className: "id", textContent: picture.id }),
    );
  };

  const show = () => {
    const pictures = wanted();
    const last = Math.max(0, Math.ceil(pictures.length / PAGE) - 1);
    page = Math.min(page, last);
    const start = page * PAGE;
    const part = pictures.slice(start, start + PAGE);
    list.replaceChildren(...part.map(card));
    found.textContent = pictures.length
      ? `${start + 1} to ${start + part.length} of ${pictures.length} pictures`
      : "No picture is like that.";
    for (const pager of pagers) {
      const step = (name, by, off) => {
        const button = make("button", { type: "button", textContent: name, disabled: off });
        button.addEventListener("click", () => {
          page += by;
          keep();
          show();
          found.scrollIntoView();
        });
        return button;
      };
      pager.replaceChildren(
        ...(last ? [step("‹ earlier", -1, page === 0),
          make("span", { textContent: `page ${page + 1} of ${last + 1}` }),
          step("later ›", 1, page === last)] : []),
      );
    }
  };

  // The address keeps the choice, so that a view can be sent to somebody.
  const keep = () => {
    const choice = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    if (page) choice.set("page", page + 1);
    history.replaceState(null, "", `#${choice}`);
  };

  const restore = () => {
    const choice = new URLSearchParams(location.hash.slice(1));
    form.reset();
    for (const [name, value] of choice) {
      if (name === "page") continue;
      for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
        if (field.type !== "radio") field.value = value;
        else if (field.value === value && !field.disabled) field.checked = true;
      }
    }
    page = Math.max(0, (parseInt(choice.get("page"), 10) || 1) - 1);
    show();
  };

  form.addEventListener("input", () => {
    page = 0;
    keep();
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", restore);
  restore();
})();
