import { useEffect, useState } from 'preact/hooks';
import { type ColouredLines, coloursOf, isColourable, knownColours } from './colours.ts';
import type { LanguageName } from './language-names.ts';

/** Pause after the last piece of growing code before it is coloured. */
const settleMs = 200;

/** Coloured lines of a code that no longer grows; null before, and for code that is not coloured. */
export function useColours(code: string, language: LanguageName | null): ColouredLines | null {
  const [settled, setSettled] = useState<string | null>(null);
  useEffect(() => {
    if (language === null || settled === code) return;
    const timer = setTimeout(() => setSettled(code), settleMs);
    return () => clearTimeout(timer);
  }, [code, language]);
  if (language === null) return null;
  if (settled !== code) return knownColours(code, language) ?? null;
  return isColourable(code) ? coloursOf(code, language) : null;
}
