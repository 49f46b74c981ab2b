import type { ReviewConflict } from '../../../../../machines/browser.ts';
import { visible } from '../../../../lib/browser.ts';

/** Most conflicts that are listed by name. */
const maxListed = 50;

interface ConflictListProps {
  /** The first conflicts. */
  readonly conflicts: readonly ReviewConflict[];
  readonly total: number;
}

/** Changes of others that prevented an overwrite. */
export function ConflictList({ conflicts, total }: ConflictListProps) {
  const shown = conflicts.slice(0, maxListed);
  return (
    <>
      <ul class="mono">
        {shown.map(({ path, change, by }) => (
          <li key={path}>
            {visible(path, { multiline: false })} ({change} by{' '}
            {by === 'user' ? 'you' : visible(by, { multiline: false })})
          </li>
        ))}
      </ul>
      {total > shown.length && <p>And {(total - shown.length).toLocaleString()} more.</p>}
    </>
  );
}
