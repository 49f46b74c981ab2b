import type { ReviewConflict } from '../../../../../machines/browser.ts';
import { visible } from '../../../../lib/browser.ts';

/** Conflicts that are named. */
const maxListed = 50;

/** Changes of others because of which nothing was overwritten. */
export function ConflictList({ conflicts }: { readonly conflicts: readonly ReviewConflict[] }) {
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
      {conflicts.length > shown.length && <p>And {(conflicts.length - shown.length).toLocaleString()} more.</p>}
    </>
  );
}
