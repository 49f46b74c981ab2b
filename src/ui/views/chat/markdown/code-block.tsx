import { Fragment } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { Glyph } from '../../../parts/glyphs.tsx';
import { ColouredLine } from '../code/coloured.tsx';
import { languageNamed } from '../code/language-names.ts';
import { useColours } from '../code/use-colours.ts';

/** Characters of a code block that are shown at once. */
const shownChars = 20_000;

/** Unchanged code in a separately scrolling element, with a button that copies it. */
export function CodeBlock({ text, language }: { readonly text: string; readonly language: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > shownChars;
  const name = /^[\w+#.-]{1,24}/.exec(language)?.[0] ?? '';
  const shown = useMemo(() => visible(isLong && !isWhole ? text.slice(0, shownChars) : text), [text, isWhole]);
  const lines = useColours(shown, languageNamed(name));
  return (
    <figure class="code">
      <figcaption>
        <span class="quiet">{name}</span>
        <CopyButton text={text} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <pre tabIndex={0}>
        <code>
          {lines
            ? lines.map((line, index) => (
                <Fragment key={index}>
                  {index > 0 && '\n'}
                  <ColouredLine line={line} />
                </Fragment>
              ))
            : shown}
        </code>
      </pre>
      {isLong && !isWhole && (
        <button type="button" class="bare" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </figure>
  );
}

function CopyButton({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="bare"
      aria-label="Copy code"
      title="Copy"
      onClick={() => {
        // Only secure contexts have a clipboard, although the type is not optional.
        const clipboard: Clipboard | undefined = navigator.clipboard;
        clipboard?.writeText(text).then(
          () => setCopied(true),
          () => setCopied(false),
        );
      }}
    >
      <Glyph name={isCopied ? 'done' : 'copy'} />
    </button>
  );
}
