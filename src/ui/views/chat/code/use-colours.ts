import { useEffect, useState } from 'preact/hooks';
import { type ColouredLines, coloursOf, isColourable, knownColours } from './colours.ts';
import type { LanguageName } from './language-names.ts';

/** Pause after the last piece of growing code before it is coloured. */
const settleMs = 200;

/**
 * Coloured lines of a code up to its last pause in growing, and the rest of it. Code in which text is selected is not coloured
 * before the selection has ended.
 */
export function useColours(
  code: string,
  language: LanguageName | null,
  box: { readonly current: Node | null },
): { readonly lines: ColouredLines; readonly rest: string } {
  const [settled, setSettled] = useState<string | null>(null);
  useEffect(() => {
    if (language === null || settled === code) return;
    const settle = () => {
      const selection = getSelection();
      const isSelected = box.current && selection?.isCollapsed === false && selection.containsNode(box.current, true);
      if (isSelected) document.addEventListener('selectionchange', settle, { once: true });
      else setSettled(code);
    };
    const timer = setTimeout(settle, settleMs);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('selectionchange', settle);
    };
  }, [code, language]);
  if (language === null) return { lines: [], rest: code };
  const known = settled === code ? undefined : knownColours(code, language);
  if (known) return { lines: known, rest: '' };
  if (settled === null || !code.startsWith(settled) || !isColourable(settled)) return { lines: [], rest: code };
  const lines = coloursOf(settled, language);
  return lines ? { lines, rest: code.slice(settled.length) } : { lines: [], rest: code };
}
