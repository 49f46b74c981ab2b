/** Actions on a workspace, in one table for lists, the palette and the header of its actor. */
export type Action = 'ensure' | 'restart' | 'stop';

/** Facts that decide which actions a workspace allows. */
export interface ActFacts {
  /** Public state of its agent server. */
  readonly state: string;
  /** The supervisor restarts it after a pause. */
  readonly isRetrying?: boolean;
}

/** Actions that a workspace allows in its state, the most common one first. */
export function actionsOn({ state, isRetrying = false }: ActFacts): readonly Action[] {
  switch (state) {
    case 'stopped':
    case 'asleep':
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

/** Labels of each action: for its button, and while it is in progress. */
export const actWords: Readonly<Record<Action, { readonly label: string; readonly busy: string }>> = {
  ensure: { label: 'Start', busy: 'Starting…' },
  restart: { label: 'Restart', busy: 'Restarting…' },
  stop: { label: 'Stop', busy: 'Stopping…' },
};
