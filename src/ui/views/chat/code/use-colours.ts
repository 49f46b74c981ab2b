import { useEffect, useState } from 'preact/hooks';
import { type ColouredLines, coloursOf, isColourable, knownColours } from './colours.ts';
import type { LanguageName } from './language-names.ts';

/** Code that still grows is not coloured with each piece. */
const settleMs = 200;

/** The coloured lines of a code once it has stopped to grow; null before, and for code that is not coloured. */
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
