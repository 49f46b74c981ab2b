import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { FieldKind, Setting } from './model.ts';

export interface ControlProps {
  readonly setting: Setting;
  /** The effective value, or the edited one. */
  readonly value: unknown;
  readonly id: string;
  /** Ids of the describing elements. */
  readonly describedBy: string;
  readonly isWrong: boolean;
  readonly onChange: (value: unknown) => void;
}

/** The control for each kind of setting. */
export const controls: Readonly<Record<FieldKind, (props: ControlProps) => JSX.Element>> = {
  text: TextControl,
  secret: SecretControl,
  choice: ChoiceControl,
  number: NumberControl,
  flag: FlagControl,
  list: ListControl,
  other: OtherControl,
};

const common = ({ id, describedBy, isWrong }: ControlProps) => ({
  id,
  'aria-describedby': describedBy,
  'aria-invalid': isWrong,
});

/** A value that this form does not change, as text. */
export function FixedValue({ id, value, describedBy }: Pick<ControlProps, 'id' | 'value' | 'describedBy'>) {
  return (
    <output id={id} aria-describedby={describedBy}>
      {wordsOf(value)}
    </output>
  );
}

function wordsOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value === 'object' && value !== null && 'set' in value) return isSet(value) ? 'set' : 'not set';
  const text = Array.isArray(value) ? value.join('\n') : String(value ?? '');
  return text === '' ? '–' : text;
}

function TextControl(props: ControlProps) {
  const value = typeof props.value === 'string' ? props.value : '';
  const isLong = value.includes('\n') || props.setting.keyPath.endsWith('Prompt');
  if (isLong) {
    return (
      <textarea
        {...common(props)}
        rows={3}
        value={value}
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
    );
  }
  return (
    <input
      {...common(props)}
      type="text"
      spellcheck={false}
      value={value}
      onInput={(event) => props.onChange(event.currentTarget.value)}
    />
  );
}

function NumberControl(props: ControlProps) {
  const { minimum, maximum, type } = props.setting.schema;
  return (
    <input
      {...common(props)}
      type="number"
      inputmode="numeric"
      min={minimum}
      max={maximum}
      step={type === 'integer' ? 1 : 'any'}
      value={typeof props.value === 'number' ? props.value : ''}
      onInput={(event) => props.onChange(event.currentTarget.valueAsNumber)}
    />
  );
}

function FlagControl(props: ControlProps) {
  return (
    <input
      {...common(props)}
      type="checkbox"
      checked={props.value === true}
      onChange={(event) => props.onChange(event.currentTarget.checked)}
    />
  );
}

function ChoiceControl(props: ControlProps) {
  const choices = (props.setting.schema.enum ?? []).map(String);
  return (
    <select
      {...common(props)}
      value={String(props.value ?? '')}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    >
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  );
}

/** One entry per line; empty lines are ignored. The typed text stays until the field is left. */
function ListControl(props: ControlProps) {
  const entries = Array.isArray(props.value) ? props.value.map(String) : [];
  const draft = useSignal<string | null>(null);
  return (
    <textarea
      {...common(props)}
      rows={Math.min(8, Math.max(2, entries.length + 1))}
      spellcheck={false}
      placeholder="One per line"
      value={draft.value ?? entries.join('\n')}
      onInput={(event) => {
        draft.value = event.currentTarget.value;
        props.onChange(
          draft.value
            .split('\n')
            .map((line) => line.trim())
            .filter((line) => line !== ''),
        );
      }}
      onBlur={() => {
        draft.value = null;
      }}
    />
  );
}

const isSet = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && (value as { readonly set?: unknown }).set === true;

/** The server never sends a secret: only whether it is set. */
function SecretControl(props: ControlProps) {
  const isReplaced = typeof props.value === 'string';
  return (
    <span class="secret">
      <input
        {...common(props)}
        type="password"
        autocomplete="new-password"
        placeholder={isSet(props.value) ? '•••••••• (set)' : 'not set'}
        value={isReplaced ? String(props.value) : ''}
        onInput={(event) => props.onChange(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
      />
      {isSet(props.value) && (
        <button type="button" onClick={() => props.onChange(null)}>
          Clear
        </button>
      )}
    </span>
  );
}

function OtherControl({ value, id, setting }: ControlProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
    // biome-ignore lint/a11y/useSemanticElements: a fieldset holds controls, this holds none
    <pre id={id} tabIndex={0} role="group" aria-label={setting.title}>
      {value === undefined ? '–' : JSON.stringify(value, null, 2)}
    </pre>
  );
}
