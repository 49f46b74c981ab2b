import type { ConfigView } from '../../../protocol/index.ts';
import { controls, FixedValue } from './control.tsx';
import { type Edits, faultOf, originOf, placeOf, presentValue, reasonOf, type Setting, valueAt } from './model.ts';

export interface FieldProps {
  readonly setting: Setting;
  readonly config: ConfigView;
  readonly edits: Edits;
  /** Whether the form cannot be changed. */
  readonly isFixed: boolean;
  /** Number of the note with the reason why this form does not change it. */
  readonly lock: number | undefined;
  /** Message of the server against the value that was sent. */
  readonly issue: string | undefined;
  /** `undefined` reverts the edit. */
  readonly onEdit: (keyPath: string, value: unknown) => void;
}

const origins = { workspace: 'this workspace', user: 'your settings', default: 'default' } as const;

/** One setting in a row: its name, its value, and the origin of the value. */
export function Field(props: FieldProps) {
  const { setting, config, edits, lock, onEdit } = props;
  const { keyPath, title, schema, kind } = setting;
  const isFixed = props.isFixed || schema.readOnly === true;
  const isEdited = edits.has(keyPath);
  const origin = originOf(config, keyPath);
  const value = valueShown(props);
  const fault = props.issue ?? (isEdited ? faultOf(setting, edits.get(keyPath)) : undefined);
  const id = `setting-${keyPath}`;
  const Control = controls[kind];
  const isShownOnly = kind === 'other';
  const describedBy = lock === undefined ? `${id}-about` : `${id}-about lock-${lock}`;
  const place = isFixed ? placeOf(config, keyPath) : undefined;
  return (
    <div class={`field ${isEdited ? 'edited' : ''}`}>
      <div class="named">
        {isShownOnly ? <span>{title}</span> : <label for={id}>{title}</label>}
        <code class="quiet cut" title={keyPath}>
          {keyPath}
        </code>
      </div>
      <div class="value">
        {isFixed && !isShownOnly ? (
          <FixedValue id={id} value={value} describedBy={describedBy} />
        ) : (
          <Control
            setting={setting}
            value={value}
            id={id}
            describedBy={describedBy}
            isWrong={fault !== undefined}
            onChange={(next) => onEdit(keyPath, next)}
          />
        )}
        <p id={`${id}-about`} class="quiet">
          {schema.description}
          {lock !== undefined && (
            <span class="lock" title={`Not changed in this form: ${reasonOf(schema)}`}>
              {' '}
              Locked ({lock})
            </span>
          )}
          {fault !== undefined && <strong class="danger"> {fault}</strong>}
        </p>
      </div>
      <p class="origin quiet">
        {isEdited ? <b>changed</b> : origins[origin]}
        {place !== undefined && <code class="place"> {place}</code>}
        {schema['x-restart'] !== undefined && schema['x-restart'] !== false && (
          <span title="Holds from the next start of the agent server on"> · after restart</span>
        )}
        {isEdited && (
          <button type="button" class="bare" onClick={() => onEdit(keyPath, undefined)}>
            Undo
          </button>
        )}
        {!isEdited && origin === 'workspace' && !isFixed && !isShownOnly && (
          <button
            type="button"
            class="bare"
            title="Take it out of the workspace's file"
            onClick={() => onEdit(keyPath, null)}
          >
            Reset
          </button>
        )}
      </p>
    </div>
  );
}

/** Value of the control: the edit; for a setting to be removed, the value that will apply without it. */
function valueShown({ setting, config, edits }: FieldProps): unknown {
  const { keyPath, schema, kind } = setting;
  if (!edits.has(keyPath)) return presentValue(config, setting);
  const edit = edits.get(keyPath);
  if (edit !== null) return edit;
  return kind === 'secret' ? { set: false } : (valueAt(config.user, keyPath) ?? schema.default);
}
