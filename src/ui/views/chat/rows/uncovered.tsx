import { visible } from '../../../../lib/browser.ts';
import { uncoveredWords } from '../../../../protocol/browser.ts';
import type { Checkpoint } from '../../../../protocol/index.ts';

/** Most entries that are listed by name. */
const maxListed = 20;

/** Entries that no checkpoint covers, with the reason. */
export function Uncovered({
  entries,
  total = entries.length,
}: {
  readonly entries: Checkpoint['notCovered'];
  /** Number of all entries; `entries` may hold only the first of them. */
  readonly total?: number;
}) {
  const shown = entries.slice(0, maxListed);
  const more = Math.max(total, entries.length) - shown.length;
  return (
    <>
      <ul class="mono">
        {shown.map(({ path, reason }) => (
          <li key={path}>
            {visible(path, { multiline: false })} ({uncoveredWords[reason] ?? reason})
          </li>
        ))}
      </ul>
      {more > 0 && <p>And {more.toLocaleString()} more.</p>}
    </>
  );
}
