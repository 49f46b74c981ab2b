/** Makes hidden characters of a change visible to the model in a form that can be turned back. */
import { codePointName, visible as visibleText } from '../../lib/index.ts';

const shown = /⟨U\+([0-9A-F]{4,6})⟩/g;

const spell = (codePoint: number): string => `⟨${codePointName(codePoint)}⟩`;

/** Spells out each character that a reader does not see: `⟨U+202E⟩`. Line ends become `\n`. */
export const visible = (text: string): string => visibleText(text.replaceAll('\r\n', '\n'), { strict: true, spell });

/** Reverts `visible`, for a model that copied from the prompt. */
export function fromVisible(text: string): string {
  return text.replace(shown, (whole, digits: string) => {
    const point = Number.parseInt(digits, 16);
    if (point > 0x10ffff) return whole;
    const found = String.fromCodePoint(point);
    // Repeated, because a mark is spelled out in a stack only.
    return visible(found.repeat(5)).endsWith(whole) ? found : whole;
  });
}
