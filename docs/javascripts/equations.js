// Equations arrive as \(...\) in a span or \[...\] in a div.
for (const element of document.querySelectorAll(".arithmatex")) {
  const displayMode = element.tagName === "DIV";
  katex.render(element.textContent.trim().slice(2, -2), element, { displayMode, strict: "ignore" });
}
