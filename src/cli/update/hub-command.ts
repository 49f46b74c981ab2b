import { hubCommand } from '../../client/index.ts';
import { packageRoot } from '../../lib/index.ts';

/** Command line that starts the Hub of another installed version. A Node outside of this version is reused. */
export function hubCommandAt(directory: string): ReturnType<typeof hubCommand> {
  const own = packageRoot();
  const there = (word: string): string => (word.startsWith(`${own}/`) ? directory + word.slice(own.length) : word);
  const { command, args } = hubCommand();
  return { command: there(command), args: args.map(there) };
}
