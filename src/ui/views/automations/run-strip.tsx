import type { AutomationRun } from '../../../protocol/index.ts';
import { runsInWords } from './words.ts';

const places = 20;
const step = 8;
const width = 6;
const height = 20;
const shortest = 4;

/**
 * The last runs as bars, the newest on the right: their height shows the duration; a failed run is crossed out, a cancelled
 * one is hollow, a missed one is a dot on the baseline, a running one has no top.
 */
export function RunStrip({ runs }: { readonly runs: readonly AutomationRun[] }) {
  const shown = runs.slice(0, places).reverse();
  const longest = Math.max(1_000, ...shown.map(({ durationMs = 0 }) => durationMs));
  return (
    <svg
      class="runs"
      viewBox={`0 0 ${places * step} ${height}`}
      width={places * step}
      height={height}
      role="img"
      aria-label={runsInWords(runs.slice(0, places))}
    >
      {shown.map((run, index) => (
        <g key={run.runId} transform={`translate(${(places - shown.length + index) * step} 0)`} class={run.status}>
          <Bar run={run} tall={heightOf(run, longest)} />
        </g>
      ))}
    </svg>
  );
}

/** Height by the logarithm of the duration, so that a run of a second and one of an hour are both visible. */
function heightOf({ durationMs = 0 }: AutomationRun, longest: number): number {
  return shortest + (Math.log1p(durationMs) / Math.log1p(longest)) * (height - shortest - 1);
}

function Bar({ run, tall }: { readonly run: AutomationRun; readonly tall: number }) {
  const top = height - tall;
  if (run.status === 'missed') return <circle cx={width / 2} cy={height - 3} r="2" />;
  return (
    <>
      <rect x="0.5" y={top} width={width - 1} height={tall - 0.5} rx="1" />
      {run.status === 'failed' && <path d={`M0 ${height - 6}l${width} -4M0 ${height - 1}l${width} -4`} />}
    </>
  );
}
