import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { ReviewFinding, Severity } from '../../../../protocol/index.ts';
import type { FindingChange } from '../../review/api.ts';
import { severityLooks } from '../../review/words.ts';
import type { Conflict, DraftActs } from './acts.ts';

type Fields = Pick<ReviewFinding, 'severity' | 'title' | 'body' | 'newText'>;
const fieldsOf = ({ severity, title, body, newText }: ReviewFinding): Fields => ({
  ...{ severity, title, body },
  ...(newText !== undefined && { newText }),
});
const same = (a: Fields, b: Fields): boolean => JSON.stringify(a) === JSON.stringify(b);

interface FormProps {
  readonly finding: ReviewFinding;
  /** Version of the shown draft. */
  readonly version: number;
  readonly acts: DraftActs;
  readonly onDone: () => void;
}

/** Form to reword a finding. A change by another user is shown before it is overwritten. */
export function FindingForm({ finding, version, acts, onDone }: FormProps) {
  const base = useRef(fieldsOf(finding));
  const fields = useSignal<Fields>(base.current);
  const conflict = useSignal<Conflict | null>(null);
  const isBusy = useSignal(false);
  const isOutdated = conflict.value !== null || !same(base.current, fieldsOf(finding));
  const set = (change: Partial<Fields>) => {
    fields.value = { ...fields.value, ...change };
  };
  const save = async () => {
    isBusy.value = true;
    const outcome = await acts.saveFinding(finding.findingId, changeOf(base.current, fields.value), version);
    isBusy.value = false;
    if (outcome === null) onDone();
    else if (outcome) conflict.value = outcome;
  };
  return (
    <form
      class="edit"
      aria-label={`Edit “${finding.title}”`}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {isOutdated && (
        <p class="warn" role="alert">
          {conflict.value?.message ?? 'Another user has changed this finding.'} Saving puts your text in place of
          theirs: “{finding.title}”.
        </p>
      )}
      <label>
        Severity
        <select
          value={fields.value.severity}
          onChange={(event) => set({ severity: event.currentTarget.value as Severity })}
        >
          {Object.entries(severityLooks).map(([severity, { word }]) => (
            <option key={severity} value={severity}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <label>
        Title
        <input
          required
          maxLength={200}
          value={fields.value.title}
          onInput={(event) => set({ title: event.currentTarget.value })}
        />
      </label>
      <label>
        Text
        <textarea
          required
          rows={6}
          maxLength={10_000}
          value={fields.value.body}
          onInput={(event) => set({ body: event.currentTarget.value })}
        />
      </label>
      {finding.kind === 'suggestion' && (
        <label>
          Suggested lines
          <textarea
            class="mono"
            rows={5}
            spellcheck={false}
            value={fields.value.newText ?? ''}
            onInput={(event) => set({ newText: event.currentTarget.value })}
          />
        </label>
      )}
      <footer>
        <button type="button" onClick={onDone}>
          Stop editing
        </button>
        <button type="submit" class="main" disabled={isBusy.value}>
          {isOutdated ? 'Save all the same' : 'Save'}
        </button>
      </footer>
    </form>
  );
}

/** Selects the changed fields: changes of other users to other fields stay. */
function changeOf(base: Fields, fields: Fields): FindingChange {
  const { severity, title, body, newText } = fields;
  const change: FindingChange = {
    ...(severity !== base.severity && { severity }),
    ...(title !== base.title && { title }),
    ...(body !== base.body && { body }),
    ...(newText !== undefined && newText !== base.newText && { newText }),
  };
  // The server rejects an empty change; an unchanged title changes nothing.
  return Object.keys(change).length === 0 ? { title } : change;
}
