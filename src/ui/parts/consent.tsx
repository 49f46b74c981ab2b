import { useEffect, useRef, useState } from 'preact/hooks';
import { count, foldBlankLines, visible } from '../../lib/browser.ts';
import './consent.css';

/** Reason why a button that allows a request is disabled. */
export const unseenTitle = 'Read the request to its end first';

/**
 * Records which parts of a request a person has seen to their end.
 *
 * @param parts names of all parts
 */
export function useSeen(parts: readonly string[]) {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  return {
    isSeen: parts.every((part) => seen.has(part)),
    see: (part: string) => setSeen((before) => new Set(before).add(part)),
  };
}

/** End of a part; reports once that it was in view, through every box that clips it. */
export function EndMark({ onSeen }: { readonly onSeen: () => void }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      onSeen();
    });
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return <span ref={place} class="end-mark" aria-hidden="true" />;
}

/** A text that a person is asked to allow: blank lines folded, with its length and the number of lines below the box. */
export function ConsentText({ text, onSeen }: { readonly text: string; readonly onSeen: () => void }) {
  const box = useRef<HTMLPreElement>(null);
  const [below, setBelow] = useState(0);
  const [isWhole, setIsWhole] = useState(false);
  const measure = () => {
    if (box.current) setBelow(linesBelow(box.current));
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const lines = text.split('\n').length;
  return (
    <div class="consent">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <pre ref={box} class={isWhole ? 'mono whole' : 'mono'} tabIndex={0} onScroll={measure}>
        {foldBlankLines(visible(text, { strict: true }))}
        <EndMark onSeen={onSeen} />
      </pre>
      {(lines > 1 || below > 0) && (
        <p class="quiet" role="status">
          {count(lines, 'line')}
          {below > 0 && `, ${below} more below`}
        </p>
      )}
      {below > 0 && (
        <button type="button" class="bare" onClick={() => setIsWhole(true)}>
          Show all
        </button>
      )}
    </div>
  );
}

/** Lines of a box that are below its visible part. */
function linesBelow(box: HTMLPreElement): number {
  const lineHeight = Number.parseFloat(getComputedStyle(box).lineHeight) || 16;
  return Math.max(0, Math.ceil((box.scrollHeight - box.clientHeight - box.scrollTop - lineHeight / 2) / lineHeight));
}
