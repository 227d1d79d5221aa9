"use strict";
const token = new URLSearchParams(location.search).get("token");
const byId = (id) => document.getElementById(id);
let state, at = 0;

async function ask(path, body) {
  const options = { headers: { "X-Token": token } };
  if (body) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  const answer = await fetch(path, options);
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error);
  return data;
}
function entry([name, text], hint) {
  const term = document.createElement("dt"), value = document.createElement("dd");
  term.textContent = name;
  term.title = hint;
  value.textContent = text;
  value.dir = "auto";
  return [term, value];
}
const given = (task) => state.labels[task.id] || {};
const options = (task, field) => task.options.length ? task.options : field.options;
const isDone = (task) => state.fields.every((field) => field.name in given(task));
const address = (task, index) => "/image?" + new URLSearchParams({ token, task: task.id, index });

function picture(task, index, name) {
  const image = document.createElement("img");
  image.src = address(task, index);
  image.alt = name;
  return image;
}
// Fetched whole: then it can be played again and sought in, although the server sends no parts.
function player(task, index, name) {
  const video = document.createElement("video");
  Object.assign(video, { controls: true, loop: true, muted: true, autoplay: true });
  video.ariaLabel = name;
  fetch(address(task, index)).then(async (answer) => {
    if (!answer.ok) throw new Error((await answer.json()).error);
    video.src = URL.createObjectURL(await answer.blob());
  }).catch((error) => say(`a clip can't be shown: ${error.message}`, true));
  return video;
}
function showImages(task) {
  for (const old of document.querySelectorAll("#images video")) URL.revokeObjectURL(old.src);
  byId("images").dataset.task = task.id;
  byId("images").replaceChildren(...Array.from({ length: task.images }, (_, index) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    const named = task.captions[index] || `image ${index + 1}`;
    const seen = (task.clips.includes(index) ? player : picture)(task, index, named);
    caption.textContent = task.captions[index] || "";
    figure.append(seen, caption);
    return figure;
  }));
}

function show() {
  const task = state.tasks[at], done = state.tasks.filter(isDone).length;
  byId("count").textContent = `${at + 1} of ${state.tasks.length}, ${done} done`;
  byId("bar").max = state.tasks.length;
  byId("bar").value = done;
  if (byId("images").dataset.task !== task.id) showImages(task);
  byId("texts").className = task.texts.length === 1 ? "one" : "";
  byId("texts").replaceChildren(...task.texts.flatMap((text) => entry(text, task.hints[text[0]] || "")));
  const next = state.fields.find((field) => !(field.name in given(task)));
  byId("fields").replaceChildren(...state.fields.map((field) => {
    const box = document.createElement("fieldset"), title = document.createElement("legend");
    title.textContent = field.title;
    box.className = field === next ? "next" : "";
    box.append(title, ...options(task, field).map(([value, key]) => {
      const button = document.createElement("button"), hint = document.createElement("kbd");
      button.type = "button";
      button.textContent = value;
      hint.textContent = key;
      if (key !== value) button.append(hint);
      button.ariaPressed = String(given(task)[field.name] === value);
      button.onclick = () => choose(field, value);
      return button;
    }));
    return box;
  }));
  byId("note").hidden = !state.note;
  byId("note").value = given(task).note || "";
}

function say(text, wrong) {
  byId("said").textContent = text;
  byId("said").className = wrong ? "wrong" : "";
}

async function save(task, values) {
  try {
    await ask("/click", { annotator: state.annotator, task: task.id, values });
    state.labels[task.id] = { ...given(task), ...values };
    say("saved");
    return true;
  } catch (error) {
    say(`not saved: ${error.message}`, true);
    return false;
  }
}

async function choose(field, value) {
  const task = state.tasks[at], whole = isDone(task);
  if (!await save(task, { [field.name]: value })) return;
  if (!whole && isDone(task) && !(state.note && value === "edit")) step(1);
  else show();
  if (state.note && value === "edit") byId("note").focus();
}

function step(by) {
  at = Math.min(Math.max(at + by, 0), state.tasks.length - 1);
  show();
}

async function compare() {
  const { done, tasks, alpha } = await ask("/agreement");
  byId("agreement").replaceChildren(
    ...Object.entries(done).map(([who, count]) => [who, `${count} of ${tasks} done`]).flatMap((line) => entry(line, "")),
    ...Object.entries(alpha).map(([field, value]) =>
      [`${field}, Krippendorff's alpha`, value === null ? "not defined yet" : value.toFixed(3)],
    ).flatMap((line) => entry(line, "")));
}

async function begin(name) {
  try {
    state = await ask("/state?" + new URLSearchParams({ annotator: name }));
  } catch (error) {
    byId("name").setCustomValidity(error.message);
    byId("name").reportValidity();
    return;
  }
  byId("who").hidden = true;
  byId("work").hidden = false;
  at = Math.max(state.tasks.findIndex((task) => !isDone(task)), 0);
  show();
}

byId("who").onsubmit = (event) => { event.preventDefault(); begin(byId("name").value); };
byId("name").oninput = () => byId("name").setCustomValidity("");
byId("others").ontoggle = () => byId("others").open && compare();
byId("back").onclick = () => step(-1);
byId("skip").onclick = () => step(1);
byId("note").onchange = () => save(state.tasks[at], { note: byId("note").value });
document.onkeydown = (event) => {
  if (!state || event.target.tagName === "TEXTAREA" || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowLeft") return step(-1);
  if (event.key === "ArrowRight") return step(1);
  const task = state.tasks[at];
  const open = state.fields.find((field) => !(field.name in given(task))) || state.fields.at(-1);
  const option = options(task, open).find(([, key]) => key === event.key.toLowerCase());
  if (option) { event.preventDefault(); choose(open, option[0]); }
};
