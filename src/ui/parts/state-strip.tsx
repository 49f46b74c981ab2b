import { duration } from './format.ts';
import './state-strip.css';

export interface Work {
  /** Time of all turns, in milliseconds. */
  readonly totalMs: number;
  readonly toolMs: number;
  /** Time in which a person was awaited. */
  readonly waitMs: number;
}

interface Segment {
  readonly kind: 'asks' | 'works' | 'thinks';
  readonly words: string;
  readonly share: number;
}

/** Shares of the time of a conversation; calls that ran side by side count once. */
export function shareOf({ totalMs, toolMs, waitMs }: Work): readonly Segment[] {
  if (totalMs <= 0) return [];
  const asks = Math.min(1, waitMs / totalMs);
  const works = Math.min(1 - asks, toolMs / totalMs);
  const segments: readonly Segment[] = [
    { kind: 'asks', words: 'waiting for you', share: asks },
    { kind: 'works', words: 'tools', share: works },
    { kind: 'thinks', words: 'model', share: 1 - asks - works },
  ];
  return segments.filter(({ share }) => share > 0.005);
}

/** `24 % waiting for you, 52 % tools, 24 % model, 16 s`, as a strip whose widths are the shares. */
export function StateStrip({ work }: { readonly work: Work }) {
  const shares = shareOf(work);
  if (shares.length === 0) return null;
  const words = [...shares.map(({ words, share }) => `${Math.round(share * 100)} % ${words}`), duration(work.totalMs)];
  const label = words.join(', ');
  return (
    <span class="state-strip" role="img" aria-label={label} title={label}>
      {shares.map(({ kind, share }) => (
        <i key={kind} class={kind} style={{ flexGrow: share }} />
      ))}
    </span>
  );
}
