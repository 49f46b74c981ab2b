import type { Remedy } from '../../../protocol/index.ts';
import { type Action, actionsOn, actWords } from '../../parts/workspace-acts.ts';
import { isRetrying, type Shown, type Workspaces } from './workspaces.ts';

interface ActsProps {
  readonly store: Workspaces;
  readonly workspace: Shown;
  readonly tabIndex: 0 | -1;
  readonly act: (action: Action, path: string) => void;
  /** Remedy with a button of its own: its act is left out. */
  readonly remedy?: Remedy | undefined;
}

/** Actions on a workspace in its state, and the way to its page. */
export function Acts({ store, workspace, tabIndex, act, remedy }: ActsProps) {
  const { path, state, states, record, page } = workspace;
  const busy = store.busy.value.get(path);
  const beside = remedy?.act === 'start' ? 'ensure' : remedy?.act;
  const actions = actionsOn({ state, isRetrying: isRetrying(states) }).filter((action) => action !== beside);
  const wordsOf = (action: Action) => {
    if (busy === action) return actWords[action].busy;
    return action === 'restart' && record?.configChanged ? 'Restart to apply' : actWords[action].label;
  };
  return (
    <>
      {actions.map((action) => (
        <button
          key={action}
          type="button"
          class="bare"
          tabIndex={tabIndex}
          disabled={busy !== undefined}
          onClick={(event) => {
            event.stopPropagation();
            act(action, path);
          }}
        >
          {wordsOf(action)}
        </button>
      ))}
      {page !== null && (
        <a class="button bare" href={page} tabIndex={tabIndex} onClick={(event) => event.stopPropagation()}>
          Open
        </a>
      )}
    </>
  );
}
