import type { ComponentChildren } from 'preact';
import { Mark } from '../../parts/icons.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { type StatusLabel, webAddress } from './words.ts';

/** A state in a word, with its mark. */
export const Pill = ({ look: { word, tone, shape } }: { readonly look: StatusLabel }) => (
  <span class={`pill ${tone}`}>
    <Mark tone={tone} shape={shape} />
    {word}
  </span>
);

/** A moment, shown relative to now. */
export function Moment({ at, now }: { readonly at: string | undefined; readonly now: number }) {
  if (at === undefined) return <span class="quiet">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={bothTimes(ms)}>
      {distance(ms, now)}
    </time>
  );
}

/** A link to the source in a tab of its own; plain text for an address that is not HTTP. */
export function Outward({
  url,
  children,
  class: more,
}: {
  readonly url: string | undefined;
  readonly children: ComponentChildren;
  readonly class?: string;
}) {
  const address = webAddress(url);
  if (address === undefined) return <span class={more}>{children}</span>;
  return (
    <a href={address} target="_blank" rel="noreferrer noopener" class={more}>
      {children}
    </a>
  );
}
