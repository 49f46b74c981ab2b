import { signal } from '@preact/signals';
import type { LanguageName } from './language-names.ts';
import type { Stretch } from './languages.ts';

/** Most characters of one code that are coloured: on a hostile text, patterns take more than linear time. */
export const maxColouredChars = 20_000;
/** Very long lines and long runs of empty lines are not coloured, for the same reason. */
const slow = /[^\n]{2000}|\n{100}/;

export type ColouredLines = readonly (readonly Stretch[])[];
type Colour = (code: string, language: LanguageName) => ColouredLines;

const loaded = signal<Colour | null>(null);
let isAsked = false;

/** Fetches the languages, once. Without them code is shown without colours. */
function load(): void {
  if (isAsked) return;
  isAsked = true;
  import('./languages.ts').then(
    ({ colouredLines }) => {
      loaded.value = colouredLines;
    },
    () => {
      // The network is down: the next code fetches them again.
      isAsked = false;
    },
  );
}

/** Codes that were coloured lately, so that a row that is scrolled back into sight is coloured at once. */
const recent = new Map<string, ColouredLines>();
const maxRecent = 100;

export const isColourable = (code: string): boolean => code.length <= maxColouredChars && !slow.test(code);

/** The coloured lines of a code when they are known; a subscribed component is drawn again when the languages have arrived. */
export function knownColours(code: string, language: LanguageName): ColouredLines | undefined {
  return recent.get(`${language}\n${code}`);
}

/** Colours a code. Null while the languages are fetched; a component that reads it is drawn again when they have arrived. */
export function coloursOf(code: string, language: LanguageName): ColouredLines | null {
  const known = knownColours(code, language);
  if (known) return known;
  load();
  const lines = loaded.value?.(code, language);
  if (!lines) return null;
  recent.set(`${language}\n${code}`, lines);
  const [oldest] = recent.keys();
  if (recent.size > maxRecent && oldest !== undefined) recent.delete(oldest);
  return lines;
}
