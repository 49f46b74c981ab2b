import { Fragment } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { visible } from '../../../../lib/browser.ts';
import { cutText } from '../../../../protocol/browser.ts';
import { CopyButton } from '../../../parts/copy.tsx';
import { ColouredLine } from '../code/coloured.tsx';
import { languageNamed } from '../code/language-names.ts';
import { useColours } from '../code/use-colours.ts';
import { GrowingText } from './growing-text.tsx';

/** Characters of a code block that are shown at once. */
const shownChars = 20_000;

/** Unchanged code in a separately scrolling element, with a button that copies it. */
export function CodeBlock({ text, language }: { readonly text: string; readonly language: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > shownChars;
  const name = /^[\w+#.-]{1,24}/.exec(language)?.[0] ?? '';
  const shown = useMemo(() => visible(isLong && !isWhole ? cutText(text, shownChars) : text), [text, isWhole]);
  const box = useRef<HTMLElement>(null);
  const { lines, rest } = useColours(shown, languageNamed(name), box);
  return (
    <figure class="code">
      <figcaption>
        <span class="quiet">{name}</span>
        <CopyButton label="Copy code" text={() => text} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <pre tabIndex={0}>
        <code ref={box}>
          {lines.map((line, index) => (
            <Fragment key={index}>
              {index > 0 && '\n'}
              <ColouredLine line={line} />
            </Fragment>
          ))}
          <GrowingText key="rest" text={rest} />
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
