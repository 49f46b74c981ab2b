import type { Remedy } from '../../../protocol/index.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { type Action, actionsOn, actWords } from '../../parts/workspace-acts.ts';
import type { Shown, Workspaces } from './workspaces.ts';

/** Action of the button of a remedy. */
const endOf: Partial<Record<Remedy['act'], Action>> = { start: 'ensure', restart: 'restart', editSetting: 'restart' };

interface ActsProps {
  readonly store: Workspaces;
  readonly workspace: Shown;
  readonly tabIndex: 0 | -1;
  readonly act: (action: Action, workspace: Shown) => void;
  /** Remedy with a button of its own: its act is left out. */
  readonly remedy?: Remedy | undefined;
}

/** Actions on a workspace in its state, and the way to its page. */
export function Acts({ store, workspace, tabIndex, act, remedy }: ActsProps) {
  const { path, record } = workspace;
  const { state, phase, page } = record;
  const busy = store.busy.value.get(path);
  const beside = remedy && endOf[remedy.act];
  const actions = actionsOn({ state, isRetrying: phase === 'exited.backingOff' }).filter((action) => action !== beside);
  const applies = (action: Action) => action === 'restart' && record.configChanged === true;
  return (
    <>
      {actions.map((action) => (
        <button
          key={action}
          type="button"
          class="plain"
          tabIndex={tabIndex}
          disabled={busy !== undefined}
          aria-label={applies(action) ? 'Restart to apply' : undefined}
          title={applies(action) ? 'The configuration has changed: restart to apply it' : undefined}
          onClick={(event) => {
            event.stopPropagation();
            act(action, workspace);
          }}
        >
          {applies(action) && <Glyph name="refresh" />}
          {busy === action ? actWords[action].busy : actWords[action].label}
        </button>
      ))}
      {page !== null && (
        <a class="button plain" href={page} tabIndex={tabIndex} onClick={(event) => event.stopPropagation()}>
          Open
        </a>
      )}
    </>
  );
}
