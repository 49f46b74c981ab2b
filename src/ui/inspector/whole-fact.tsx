import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { messageOf } from '../../lib/browser.ts';
import type { InspectorFact } from '../../protocol/index.ts';
import type { WholeFactProps } from '../views/actors/source.ts';
import type { Transport } from './transport.ts';

/** Button that reads the complete fact from the program. */
export const wholeFactOf = (transport: Transport): ComponentType<WholeFactProps> =>
  function WholeFact({ id, name, shown }) {
    const text = useSignal<string | null>(null);
    // Marks with which the program's reader shortens values.
    if (!/[…)]/.test(shown)) return null;
    const load = () => {
      transport.ask<InspectorFact>({ ask: 'fact', actor: id, fact: name }).then(
        (answer) => {
          text.value = answer.text ?? '(the actor has ended)';
        },
        (error: unknown) => {
          text.value = messageOf(error);
        },
      );
    };
    return (
      <>
        {' '}
        <button type="button" class="link" aria-label={`Whole value of ${name}`} onClick={load}>
          Whole
        </button>
        {text.value !== null && <pre class="whole-fact">{text.value}</pre>}
      </>
    );
  };
