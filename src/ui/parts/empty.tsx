import type { ComponentChildren } from 'preact';
import { CommandLine } from './copy.tsx';

/** Placeholder of an empty view: the reason, and the command that fills it. */
export function Empty({
  title,
  command,
  children,
}: {
  readonly title: string;
  readonly command?: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <section class="empty">
      <h2>{title}</h2>
      {children}
      {command !== undefined && <CommandLine text={command} />}
    </section>
  );
}

/** Lines where rows will be; seen only when they take longer than 150 ms. */
export function Skeleton({ rows = 8 }: { readonly rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true">
      <span class="unseen">Loading…</span>
      {Array.from({ length: rows }, (_, row) => (
        <i key={row} aria-hidden="true" />
      ))}
    </div>
  );
}
