import { shellWord } from '../../../lib/browser.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { Banner } from '../../parts/state-banner.tsx';

interface RestrictionProps {
  /** Canonical path of the workspace. */
  readonly path: string;
  /** Machine of the workspace; null: this one. */
  readonly host: string | null;
  /** Sensitive settings of its file that are ignored; absent from an older server. */
  readonly settings: readonly string[] | undefined;
}

/** Lists the ignored settings of a workspace, and the command that allows them. Empty for a trusted workspace. */
export function Restriction({ path, host, settings = [] }: RestrictionProps) {
  if (settings.length === 0) return null;
  return (
    <Banner tone="warn">
      <p>
        Restricted: {settings.join(', ')} {settings.length === 1 ? 'is' : 'are'} ignored. To review and allow, run this
        {host !== null && ` on ${host}`} and restart:
      </p>
      <CommandLine text={`oratorio trust ${shellWord(path)}`} />
    </Banner>
  );
}
