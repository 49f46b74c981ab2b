import type { Action, Shown, Workspaces } from './workspaces.ts';

interface ActsProps {
  readonly store: Workspaces;
  readonly workspace: Shown;
  readonly tabIndex: 0 | -1;
  readonly act: (action: Action, path: string) => void;
}

/** Actions on a workspace in its state. */
export function Acts({ store, workspace: { path, state, record }, tabIndex, act }: ActsProps) {
  const busy = store.busy.value.get(path);
  const isUp = state === 'running' || state === 'unhealthy';
  const isDown = state === 'stopped' || state === 'exited';
  const button = (label: string, run: () => void, isEnabled = true) => (
    <button
      type="button"
      class="bare"
      tabIndex={tabIndex}
      disabled={busy !== undefined || !isEnabled}
      onClick={(event) => {
        event.stopPropagation();
        run();
      }}
    >
      {label}
    </button>
  );
  return (
    <>
      {record?.configChanged && button('Restart to apply', () => act('restart', path), isUp)}
      {isDown && button(busy === 'ensure' ? 'Starting…' : 'Start', () => act('ensure', path))}
      {!isDown &&
        !record?.configChanged &&
        button(busy === 'restart' ? 'Restarting…' : 'Restart', () => act('restart', path), isUp)}
      {!isDown && button(busy === 'stop' ? 'Stopping…' : 'Stop', () => act('stop', path), state !== 'stopping')}
      {isUp && button('Open', () => void store.openDashboard(path))}
    </>
  );
}
