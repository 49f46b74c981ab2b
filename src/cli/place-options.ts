import type { RecordAnswer } from '../client/index.ts';
import type { EnsureInput } from '../protocol/index.ts';
import type { CommandContext } from './command.ts';
import { usageError } from './errors.ts';

type Place = NonNullable<EnsureInput['place']>;

/** Place in the options of a command; undefined if the options name no place. @throws CliError for invalid or conflicting options */
export function placeOption({ options }: Pick<CommandContext, 'options'>, command: string): Place | undefined {
  const { in: kind, image, network } = options;
  if (kind !== 'container' && network !== undefined)
    throw usageError('--network works only with --in container.', command);
  if (kind !== 'container' && kind !== 'pod' && image !== undefined)
    throw usageError('--image works only with --in container and --in pod.', command);
  if (kind !== 'local' && kind !== 'container' && kind !== 'pod') return undefined;
  return {
    kind,
    ...(typeof image === 'string' && { image }),
    ...((network === 'none' || network === 'bridge') && { network }),
  };
}

/** Whether an agent server runs in another place than the requested one. */
export function isElsewhere({ place: current }: RecordAnswer, wanted: Place): boolean {
  if ((current?.kind ?? 'local') !== wanted.kind) return true;
  // An earlier Hub does not name the network.
  const differs = (name: 'image' | 'network') =>
    wanted[name] !== undefined && current?.[name] != null && wanted[name] !== current[name];
  return differs('image') || differs('network');
}
