// One tooltip for the page; what it says is told to screen readers, too.
const tooltip = (() => {
  const box = html('div', {id: 'tooltip', role: 'presentation'}, document.body);
  const spoken = html('div', {id: 'spoken', 'aria-live': 'polite', class: 'unseen'}, document.body);
  box.hidden = true;

  // Rows: [text], [label, value] or [label, value, class of a swatch].
  function fill(title, rows) {
    clear(box);
    html('strong', {}, box, title);
    if (rows.length === 0) return;
    const table = html('table', {}, box);
    for (const [label, value, swatch] of rows) {
      const row = html('tr', {}, table);
      const cell = html('td', value === undefined ? {colspan: 2} : {}, row);
      if (swatch) html('i', {class: 'swatch ' + swatch}, cell);
      cell.appendChild(document.createTextNode(label));
      if (value !== undefined) html('td', {class: 'number'}, row, value);
    }
  }

  function place(x, y) {
    const width = box.offsetWidth;
    const height = box.offsetHeight;
    const page = document.documentElement;
    const left = x + 14 + width > page.clientWidth ? x - 14 - width : x + 14;
    const top = y + 14 + height > page.clientHeight ? y - 14 - height : y + 14;
    box.style.left = Math.max(4, left) + 'px';
    box.style.top = Math.max(4, top) + 'px';
  }

  return {
    show(title, rows, x, y) {
      fill(title, rows);
      box.hidden = false;
      place(x, y);
    },
    hide() {
      box.hidden = true;
    },
    say(text) {
      spoken.textContent = text;
    },
  };
})();
