import { humanName, timeOfDay } from '../../../parts/format.ts';
import { type Difference, factsBetween, situationOf, statesBetween } from '../diff.ts';
import { factText } from '../facts.ts';
import type { LogEntry } from '../model.ts';
import type { PanelProps } from '../store.ts';

const words: Readonly<Record<Difference['sign'], string>> = {
  '+': 'added',
  '−': 'removed',
  '~': 'changed',
  '=': 'same',
};

/** Differences of two records. Default: the selected step and the one before it. */
export function DiffPanel({ store, actor, whole }: PanelProps) {
  const { a, b } = store.compared.value;
  const find = (step: number) => whole.log.find(({ record }) => record.step === step);
  const after = find(b ?? actor.steps);
  const before = find(a ?? (after?.record.step ?? 0) - 1);
  const [first, last] = [whole.log[0]?.record.step ?? 0, whole.log.at(-1)?.record.step ?? 0];
  if (whole.log.length < 2)
    return <p class="quiet none">Two transitions are needed to compare; {whole.log.length} is held.</p>;
  return (
    <div class="diff">
      <div class="panel-tools">
        <Step
          label="From step"
          entry={before}
          first={first}
          last={last}
          onChange={(step) => store.compare({ a: step })}
        />
        <Step label="To step" entry={after} first={first} last={last} onChange={(step) => store.compare({ b: step })} />
        <button
          type="button"
          disabled={a === null && b === null}
          title="Compare the selected step with the one before it"
          onClick={() => store.compare({ a: null, b: null })}
        >
          Follow
        </button>
      </div>
      {before && after ? (
        <Table before={before} after={after} />
      ) : (
        <p class="quiet none">
          That step is not held any more: {first} to {last} are.
        </p>
      )}
    </div>
  );
}

interface StepProps {
  readonly label: string;
  readonly entry: LogEntry | undefined;
  readonly first: number;
  readonly last: number;
  readonly onChange: (step: number) => void;
}

function Step({ label, entry, first, last, onChange }: StepProps) {
  return (
    <label class="step-choice">
      <span class="quiet">{label}</span>
      <input
        type="number"
        min={first}
        max={last}
        value={entry?.record.step ?? ''}
        onChange={(event) => {
          const step = event.currentTarget.valueAsNumber;
          if (Number.isInteger(step)) onChange(step);
        }}
      />
      <span class="cut mono" title={entry?.record.at.toISOString()}>
        {entry ? `${timeOfDay(entry.record.at)} ${entry.record.event}` : 'not held'}
      </span>
    </label>
  );
}

function Table({ before, after }: { readonly before: LogEntry; readonly after: LogEntry }) {
  const [from, to] = [situationOf(before), situationOf(after)];
  const states = statesBetween(from, to);
  const facts = factsBetween(from, to);
  const changed = facts.filter(({ sign }) => sign !== '=');
  return (
    <>
      <h2>States</h2>
      {states.length === 0 ? (
        <p class="quiet none">The same.</p>
      ) : (
        <ul class="changes">
          {states.map(({ sign, name }) => (
            <li key={name} class={classOf(sign)}>
              <Sign sign={sign} /> {name}
            </li>
          ))}
        </ul>
      )}
      <h2>
        Facts{' '}
        <span class="quiet">{changed.length === 0 ? 'the same' : `${changed.length} of ${facts.length} differ`}</span>
      </h2>
      <table class="table">
        <caption class="unseen">Facts that differ</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Change</span>
            </th>
            <th scope="col">Fact</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {changed.map(({ sign, name, before, after }) => (
            <tr key={name} class={classOf(sign)}>
              <td>
                <Sign sign={sign} />
              </td>
              <th scope="row">{humanName(name)}</th>
              <td class="mono">{before === undefined ? '' : factText(name, before)}</td>
              <td class="mono">{after === undefined ? '' : factText(name, after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

const classOf = (sign: Difference['sign']): string => words[sign];

function Sign({ sign }: { readonly sign: Difference['sign'] }) {
  return (
    <b class="sign" title={words[sign]}>
      <span aria-hidden="true">{sign}</span>
      <span class="unseen">{words[sign]}</span>
    </b>
  );
}
