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

/** Shell command with a button that copies it. */
export function CommandLine({ text }: { readonly text: string }) {
  const isCopied = useSignal(false);
  useEffect(() => {
    if (!isCopied.value) return;
    const timer = setTimeout(() => {
      isCopied.value = false;
    }, 2_000);
    return () => clearTimeout(timer);
  }, [isCopied.value]);
  return (
    <div class="copied-command">
      {/* A long command scrolls, so the keyboard has to reach it. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <code tabIndex={0}>{text}</code>
      <button
        type="button"
        class="bare"
        aria-label={`Copy ${text}`}
        title="Copy"
        onClick={() => {
          navigator.clipboard?.writeText(text).then(
            () => {
              isCopied.value = true;
            },
            () => {},
          );
        }}
      >
        <Glyph name={isCopied.value ? 'done' : 'copy'} />
      </button>
    </div>
  );
}
