import { duration } from './format.ts';
import './state-strip.css';

export interface Work {
  /** Time of all turns, in milliseconds. */
  readonly totalMs: number;
  readonly toolMs: number;
  /** Time in which a person was awaited. */
  readonly waitMs: number;
  /** Time between failed requests and their repetitions; absent from earlier servers. */
  readonly pauseMs?: number | undefined;
}

/** Part of a strip. `failed` is a mark without a width. */
export interface Segment {
  readonly kind: 'asks' | 'pauses' | 'works' | 'thinks' | 'failed';
  readonly share: number;
}

const words = { asks: 'waiting for you', pauses: 'paused', works: 'tools', thinks: 'model', failed: 'failed' } as const;

/** Shares of the time of a conversation; calls that ran side by side count once. */
export function shareOf({ totalMs, toolMs, waitMs, pauseMs = 0 }: Work): readonly Segment[] {
  if (totalMs <= 0) return [];
  const asks = Math.min(1, waitMs / totalMs);
  const pauses = Math.min(1 - asks, pauseMs / totalMs);
  const works = Math.min(1 - asks - pauses, toolMs / totalMs);
  const segments: readonly Segment[] = [
    { kind: 'asks', share: asks },
    { kind: 'pauses', share: pauses },
    { kind: 'works', share: works },
    { kind: 'thinks', share: 1 - asks - pauses - works },
  ];
  return segments.filter(({ share }) => share > 0.005);
}

interface StripProps {
  readonly work: Work;
  /** Parts in order of time; absent: only the sums are shown. */
  readonly segments?: readonly Segment[];
}

/** `24 % waiting for you, 52 % tools, 24 % model, 16 s`, as a strip whose widths are the shares. */
export function StateStrip({ work, segments }: StripProps) {
  const shares = shareOf(work);
  if (shares.length === 0) return null;
  const label = [
    ...shares.map(({ kind, share }) => `${Math.round(share * 100)} % ${words[kind]}`),
    duration(work.totalMs),
  ].join(', ');
  return (
    <span class="state-strip" role="img" aria-label={label} title={label}>
      {(segments ?? shares).map(({ kind, share }, index) => (
        <i key={index} class={kind} style={{ flexGrow: share }} />
      ))}
    </span>
  );
}
