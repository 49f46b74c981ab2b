/** Acts on a workspace, in one table for lists, palette and head of its actor. */
export type Action = 'ensure' | 'restart' | 'stop';

/** Facts that decide the acts on a workspace. */
export interface ActFacts {
  /** Public state of its agent server. */
  readonly state: string;
  /** The supervisor restarts it after a pause. */
  readonly isRetrying?: boolean;
}

/** Acts that a workspace allows in its state, the usual one first. */
export function actionsOn({ state, isRetrying = false }: ActFacts): readonly Action[] {
  switch (state) {
    case 'stopped':
      return ['ensure'];
    case 'exited':
      return isRetrying ? ['ensure', 'stop'] : ['ensure'];
    case 'starting':
      return ['stop'];
    case 'stopping':
      return ['restart'];
    default:
      return ['restart', 'stop'];
  }
}

/** Words of each act: of its button, and while it is under way. */
export const actWords: Readonly<Record<Action, { readonly label: string; readonly busy: string }>> = {
  ensure: { label: 'Start', busy: 'Starting…' },
  restart: { label: 'Restart', busy: 'Restarting…' },
  stop: { label: 'Stop', busy: 'Stopping…' },
};
