// Runs before the first paint: what was chosen holds from the first pixel on. Names as in app/preferences.ts.
try {
  for (const name of ['theme', 'density']) {
    const chosen = localStorage.getItem(`oratorio.${name}`);
    if (chosen) document.documentElement.dataset[name] = chosen;
  }
} catch {
  // Storage is blocked: then the page looks as the system does.
}
