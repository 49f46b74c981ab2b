import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { App } from '../app/app.ts';
import { Glyph } from './glyphs.tsx';

/** Copies `text` to the clipboard and shows a notice, also when the browser does not allow it. */
export function copyText(app: App, text: string, what: string): void {
  const fail = () => app.toast({ text: `${what} could not be copied: the browser does not allow it.`, tone: 'danger' });
  // Only secure contexts have a clipboard, although the type is not optional.
  const clipboard: Clipboard | undefined = navigator.clipboard;
  if (!clipboard) {
    fail();
    return;
  }
  clipboard.writeText(text).then(() => app.toast({ text: `${what} copied.`, ms: 2_500 }), fail);
}

/** How long the result of a copy is shown. */
const shownMs = 2_000;

/** Button that copies a text, and the result, which is read out. */
export function CopyButton({ label, text }: { readonly label: string; readonly text: () => string | Promise<string> }) {
  const result = useSignal('');
  useEffect(() => {
    if (result.value === '') return;
    const timer = setTimeout(() => {
      result.value = '';
    }, shownMs);
    return () => clearTimeout(timer);
  }, [result.value]);
  const copy = async () => {
    try {
      // Only secure contexts have a clipboard: elsewhere this throws.
      await navigator.clipboard.writeText(await text());
      result.value = 'Copied';
    } catch {
      result.value = 'Not copied: the browser does not allow it';
    }
  };
  return (
    <span class="copy">
      <button type="button" class="bare" aria-label={label} title={label} onClick={() => void copy()}>
        <Glyph name={result.value === 'Copied' ? 'done' : 'copy'} />
      </button>
      <span class="quiet" role="status">
        {result.value}
      </span>
    </span>
  );
}

/** Shell command with a button that copies it. */
export function CommandLine({ text }: { readonly text: string }) {
  return (
    <div class="copied-command">
      {/* A long command scrolls, so the keyboard has to reach it. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <code tabIndex={0}>{text}</code>
      <CopyButton label={`Copy ${text}`} text={() => text} />
    </div>
  );
}
