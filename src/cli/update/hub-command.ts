import { hubCommand } from '../../client/index.ts';
import { packageRoot } from '../../lib/index.ts';

/** Command line of the Hub of another directory with this product. A Node outside of this one stays. */
export function hubCommandAt(directory: string): ReturnType<typeof hubCommand> {
  const own = packageRoot();
  const there = (word: string): string => (word.startsWith(`${own}/`) ? directory + word.slice(own.length) : word);
  const { command, args } = hubCommand();
  return { command: there(command), args: args.map(there) };
}
