/**
 * Characters that cannot be seen or that turn text around (Trojan Source, CVE-2021-42574), control characters, and halves of
 * a pair: what a person who reads the change does not see must not speak to the model either.
 */
const hidden = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]|\u115f|\u1160|\u3164|\uffa0|[\u{e0100}-\u{e01ef}]/gu;
const shown = /⟨U\+([0-9A-F]{4,6})⟩/g;

/** The same text with each such character spelled out: `⟨U+202E⟩`. Line ends become `\n`. */
export function visible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(hidden, (found) => `⟨U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

/** What a text was before `visible`, for a model that copied what it was shown. */
export function fromVisible(text: string): string {
  return text.replace(shown, (whole, digits: string) => {
    const point = Number.parseInt(digits, 16);
    if (point > 0x10ffff) return whole;
    const found = String.fromCodePoint(point);
    return visible(found) === whole ? found : whole;
  });
}
