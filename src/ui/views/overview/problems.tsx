import type { Problem } from '../../../protocol/index.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { Banner } from '../../parts/state-banner.tsx';

interface ProblemsProps {
  readonly problems: readonly Problem[];
  readonly tone: 'danger' | 'warn';
}

/** A banner for each problem, with the command that helps. */
export function Problems({ problems, tone }: ProblemsProps) {
  return (
    <>
      {problems.map(({ code, what, next }) => (
        <Banner key={code} tone={tone}>
          <p>{what}</p>
          {next !== null && <CommandLine text={next} />}
        </Banner>
      ))}
    </>
  );
}
