import type { TurnEmitted } from '../../../../machines/index.ts';
import type { RpcNotificationParams } from '../../../protocol/index.ts';
import { parserAdvice } from '../../printed-call.ts';
import type { TurnContext } from './context.ts';

type Details = Partial<Pick<RpcNotificationParams<'system/event'>, 'attempt' | 'waitMs' | 'reason' | 'model'>>;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;

/**
 * Reports to clients that a turn waits, changes its model or reaches a limit: as an item, an event or both. Other events of the machine
 * have no report.
 *
 * @param outputLimit output limit of the latest answer that reached it, in tokens; undefined: unknown
 */
export function report(turn: TurnContext, event: TurnEmitted, outputLimit: number | undefined): void {
  switch (event.type) {
    case 'turn.limitReached':
      addNotice(
        turn,
        'callLimitReached',
        `The turn has used its ${event.rounds} requests to the model (MaxToolCallRounds).`,
      );
      return;
    case 'turn.stuck': {
      const { rounds, tool } = event;
      const text = `The turn is ended after ${rounds} requests to the model: ${tool} was called again and again with the same result.`;
      addNotice(turn, 'callLimitReached', text);
      return;
    }
    case 'turn.cutOff': {
      const limit =
        outputLimit === undefined ? 'the output limit of the model' : `the output limit of ${outputLimit} tokens`;
      const text = `The turn is ended: calls of ${event.answers} answers in a row were cut off at ${limit} (MaxOutputTokens).`;
      addNotice(turn, 'callLimitReached', text);
      return;
    }
    case 'turn.callPrinted': {
      const text = `The model printed a tool call as text; nothing was run. ${parserAdvice}`;
      addNotice(turn, 'callPrinted', text);
      publish(turn, 'callPrinted', text);
      return;
    }
    case 'turn.endedSilently':
      addNotice(turn, 'endedSilently', 'The turn ended without a closing text: its tool calls are its result.');
      return;
    case 'turn.notConcluded':
      addNotice(turn, 'notConcluded', `The turn has no closing answer: ${event.reason}`);
      return;
    case 'turn.retrying': {
      const { attempt, waitMs, reason } = event;
      const message = `${reason} Trying again in ${seconds(waitMs)} (attempt ${attempt}).`;
      discard(turn, 'requestRepeated', message);
      publish(turn, 'retrying', message, { attempt, waitMs, reason });
      return;
    }
    case 'turn.leavingOut': {
      const { reason, leftOut } = event;
      const message = `${reason} Asking again without ${leftOut}.`;
      discard(turn, 'requestRepeated', message);
      publish(turn, 'retrying', message, { waitMs: 0, reason });
      return;
    }
    case 'turn.fallingBack': {
      const { reason, index } = event;
      const model = turn.services.settings.fallbackModels[index] ?? '';
      const message = `${reason} Continuing with ${model}.`;
      discard(turn, 'modelReplaced', message);
      publish(turn, 'fallback', message, { model, reason });
      return;
    }
    case 'turn.budgetReached':
      publish(turn, 'budgetReached', event.budget);
  }
}

const addNotice = ({ record }: TurnContext, kind: string, text: string): void => {
  record.items.add({ type: 'systemNotice', kind, text });
};

/** Withdraws the broken answer and adds a notice with the reason. */
function discard(turn: TurnContext, kind: string, text: string): void {
  turn.record.items.discardAnswer();
  addNotice(turn, kind, text);
}

function publish({ place, record }: TurnContext, kind: string, message: string, details: Details = {}): void {
  record.publish({ method: 'system/event', params: { ...place, kind, message, ...details } });
}
