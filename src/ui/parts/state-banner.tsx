import type { ComponentChildren } from 'preact';
import { Glyph } from './glyphs.tsx';
import { clockTime } from './time.ts';

/** A line above a view about the whole view; screen readers announce `danger` and `warn`. */
export function Banner({
  tone,
  children,
}: {
  readonly tone: 'neutral' | 'warn' | 'danger';
  readonly children: ComponentChildren;
}) {
  return (
    <div class={`banner ${tone}`} role={tone === 'neutral' ? 'note' : 'alert'}>
      {tone !== 'neutral' && <Glyph name="warning" />}
      {children}
    </div>
  );
}

/** Error of a failed fetch, the age of the shown data, and a button to retry. Renders nothing without an error. */
export function FaultBanner({
  error,
  at,
  retry,
}: {
  readonly error: string | null;
  /** When the shown data was fetched; null: nothing is shown. */
  readonly at: number | null;
  /** Absent: the fetch is retried automatically. */
  readonly retry?: () => void;
}) {
  if (error === null) return null;
  return (
    <Banner tone="danger">
      <p>
        {error}
        {at !== null && <span class="quiet"> Shown: as of {clockTime(at)}.</span>}
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </Banner>
  );
}
