import { useEffect } from 'preact/hooks';
import type { App } from '../app/app.ts';
import type { Command } from '../app/commands.ts';
import { isComposing } from '../parts/typing.ts';

const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);
/** Name of `Mod` on this keyboard. */
export const modKey = isMac ? '⌘' : 'Ctrl';

/** Longest pause before the second key of a sequence. */
const sequenceMs = 1_200;

/** A key press as commands name it: `j`, `Shift+J`, `Mod+k`, `ArrowDown`. */
export function keyName(event: KeyboardEvent): string {
  const isMod = isMac ? event.metaKey : event.ctrlKey;
  const isLetter = /^\p{L}$/u.test(event.key);
  const shift = event.shiftKey && (isLetter || event.key.length > 1) ? 'Shift+' : '';
  const key = isLetter ? (event.shiftKey ? event.key.toUpperCase() : event.key.toLowerCase()) : event.key;
  return `${isMod ? 'Mod+' : ''}${event.altKey ? 'Alt+' : ''}${shift}${key === ' ' ? 'Space' : key}`;
}

/** The keys of a command for people: `g s`, `⌘ K`. */
export const shownKeys = (keys: string): readonly string[] =>
  keys.split(' ').map((key) =>
    key
      .replace(/^Mod\+(.)$/, (_, letter: string) => `${modKey} ${letter.toUpperCase()}`)
      .replace(/^Shift\+(.)$/, '⇧ $1')
      .replace(/^Arrow(.).*$/, (_, side: string) => ({ U: '↑', D: '↓', L: '←', R: '→' })[side] ?? side)
      .replace('Escape', 'Esc'),
  );

/** Whether the keys are one or more plain characters, which a person may switch off. */
export const isLetterKeys = (keys: string): boolean => keys.split(' ').every((key) => /^(Shift\+)?.$/u.test(key));

/** Runs the command of each key press, while a frame is shown. */
export function useKeys(app: App): void {
  useEffect(() => {
    let begun: { readonly key: string; readonly at: number } | null = null;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isComposing(event) || event.key === 'Shift') return;
      const name = keyName(event);
      // An open dialog has the keys; the browser closes it on Escape.
      if (document.querySelector('dialog[open]') && !name.startsWith('Mod+')) return;
      const isPlain = isLetterKeys(name);
      if (isTyping(event.target) && (isPlain || !/^(Mod\+|Escape$|F\d)/.test(name))) return;
      if (isActivating(event)) return;
      const first = begun && Date.now() - begun.at < sequenceMs ? begun.key : null;
      begun = null;
      const usable = app.commands.all
        .peek()
        .filter((command) => command.isEnabled?.() !== false)
        .flatMap((command) => (command.keys ?? []).map((keys) => ({ command, keys })))
        .filter(({ keys }) => app.preferences.letterKeys.peek() || !isLetterKeys(keys));
      const sequence = first === null ? undefined : usable.find(({ keys }) => keys === `${first} ${name}`);
      const found = sequence ?? usable.find(({ keys }) => keys === name);
      if (found) run(event, found.command);
      else if (usable.some(({ keys }) => keys.startsWith(`${name} `))) begun = { key: name, at: Date.now() };
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [app]);
}

function run(event: KeyboardEvent, command: Command): void {
  event.preventDefault();
  command.run();
}

/** Where a letter is text. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !/^(checkbox|radio|button|submit|range)$/.test(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

/** Enter and Space belong to the control that has the focus. */
function isActivating({ key, target }: KeyboardEvent): boolean {
  if (key !== 'Enter' && key !== ' ') return false;
  return target instanceof Element && target.closest('button, a[href], summary, input, [role=button]') !== null;
}
