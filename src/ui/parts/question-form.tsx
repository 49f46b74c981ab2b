import type { ComponentChildren } from 'preact';
import { visible } from '../../lib/browser.ts';
import { fieldsOf } from '../../protocol/browser.ts';
import type { QuestionForm as Form, QuestionAnswer, QuestionContent, QuestionField } from '../../protocol/index.ts';
import './question-form.css';

interface QuestionFormProps {
  readonly question: Form;
  readonly isOff: boolean;
  readonly onAnswer: (answer: QuestionAnswer) => void;
}

const shown = (text: string) => visible(text, { strict: true });

/** A question with its fields, shared by the inbox and the conversation. A link opens only by a click. */
export function QuestionForm({ question, isOff, onAnswer }: QuestionFormProps) {
  const { from, source, message, url } = question;
  const fields = fieldsOf(question);
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    if (!isOff) onAnswer({ action: 'accept', content: contentOf(fields, new FormData(event.currentTarget)) });
  };
  const close = (action: 'decline' | 'cancel', label: string) => (
    <button type="button" disabled={isOff} onClick={() => onAnswer({ action })}>
      {label}
    </button>
  );
  return (
    <form class="question-form" onSubmit={submit}>
      <p class="quiet">
        {source === 'mcp' ? 'MCP server ' : ''}
        {shown(from)} asks. Never answer with a password or key.
      </p>
      {message !== undefined && <p class="asked">{shown(message)}</p>}
      {url !== undefined && (
        <p class="asked mono">
          {shown(url)} <span class="quiet">Host: {shown(new URL(url).host)}</span>
        </p>
      )}
      {fields.map((field, index) => (
        <Field key={field.name} field={field} id={`f${index}`} />
      ))}
      <div class="answers">
        {url === undefined ? (
          <button type="submit" class="main" disabled={isOff}>
            Answer
          </button>
        ) : (
          <a
            class="button main"
            href={url}
            aria-disabled={isOff}
            target="_blank"
            rel="noopener noreferrer"
            onClick={(event) => (isOff ? event.preventDefault() : onAnswer({ action: 'accept' }))}
          >
            Open {shown(new URL(url).host)}
          </a>
        )}
        {close('decline', 'Decline')}
        {close('cancel', 'Close without an answer')}
      </div>
    </form>
  );
}

function Field({ field, id }: { readonly field: QuestionField; readonly id: string }) {
  const { title, description, kind, choices, isFree, isRequired, preset } = field;
  const label: ComponentChildren = (
    <>
      <b>{shown(title)}</b>
      {description !== undefined && description !== title && <> {shown(description)}</>}
      {!isRequired && <span class="quiet"> optional</span>}
    </>
  );
  if (kind === 'boolean')
    return (
      <label class="choice">
        <input type="checkbox" name={id} defaultChecked={preset === true} />
        <span>{label}</span>
      </label>
    );
  const presets = Array.isArray(preset) ? preset : [preset];
  return (
    <fieldset>
      <legend>{label}</legend>
      {choices.map(({ value, label: words, description: means }) => (
        <label key={value} class="choice">
          <input
            type={kind === 'many' ? 'checkbox' : 'radio'}
            name={id}
            value={value}
            defaultChecked={presets.includes(value)}
          />
          <span>
            {shown(words)}
            {means !== undefined && means !== '' && <span class="quiet"> {shown(means)}</span>}
          </span>
        </label>
      ))}
      {(choices.length === 0 || isFree) && (
        <input
          inputMode={kind === 'number' || kind === 'integer' ? 'decimal' : 'text'}
          name={`${id}.own`}
          aria-label={choices.length === 0 ? title : `${title}: in your own words`}
          placeholder={isFree ? 'Or in your own words' : ''}
          defaultValue={choices.length === 0 && preset !== undefined ? String(preset) : ''}
        />
      )}
    </fieldset>
  );
}

/** The answers of a form; the server checks them. */
function contentOf(fields: readonly QuestionField[], data: FormData): QuestionContent {
  const content: Record<string, QuestionContent[string]> = {};
  for (const [index, { name, kind }] of fields.entries()) {
    const picked = data.getAll(`f${index}`).map(String);
    const own = String(data.get(`f${index}.own`) ?? '').trim();
    const [one = ''] = own === '' ? picked : [own];
    if (kind === 'boolean') content[name] = picked.length > 0;
    else if (kind === 'many') content[name] = own === '' ? picked : [...picked, own];
    else if (one !== '') content[name] = kind === 'number' || kind === 'integer' ? Number(one) : one;
  }
  return content;
}
