import { useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { cutText } from '../../../../protocol/browser.ts';
import { isPrinted } from '../data/printing.ts';
import { GrowingText } from '../markdown/growing-text.tsx';

/** Characters of a text shown initially, and the least number that each press adds. */
const firstChars = 4_096;

/** Unformatted text. Shows a part of a long one, with a button for more. */
export function LongText({
  text,
  isEnd = false,
  isCode = false,
}: {
  readonly text: string;
  /** Whether to show the end first, for growing output. */
  readonly isEnd?: boolean;
  readonly isCode?: boolean;
}) {
  const [chosen, setLimit] = useState(firstChars);
  const limit = isPrinted.value ? text.length : chosen;
  const shown =
    isEnd && text.length > limit ? text.slice(cutText(text, text.length - limit).length) : cutText(text, limit);
  const hidden = text.length - shown.length;
  const more = hidden > 0 && (
    <button type="button" class="bare" onClick={() => setLimit(limit * 8)}>
      Show more ({hidden.toLocaleString()} characters)
    </button>
  );
  return (
    <>
      {isEnd && more}
      {isCode ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
        <pre class="plain" tabIndex={0}>
          <GrowingText text={visible(shown)} />
        </pre>
      ) : (
        <p class="written">
          <GrowingText text={visible(shown)} />
        </p>
      )}
      {!isEnd && more}
    </>
  );
}
