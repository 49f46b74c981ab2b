import t from 'tap';
import { askedCall } from '../../src/acp/permission.ts';
import type { ApprovalRequest } from '../../src/protocol/index.ts';

const request = (target: string): ApprovalRequest => ({
  ...{ threadId: 't', turnId: 'u', itemId: 'i', requestId: 'r', callId: 'c', tool: 'Exec', approvalType: 'shell' },
  ...{ operation: 'run', target, scopeKey: 'k', createdAt: '', expiresAt: '' },
});

const textOf = (target: string): string => {
  const [shown] = askedCall(request(target), undefined).content ?? [];
  return shown?.type === 'content' && shown.content.type === 'text' ? shown.content.text : '';
};

t.test(
  'regression: H51 an editor shows the length of a long command, with no blank run and no hidden character',
  async (t) => {
    t.equal(textOf('ls'), 'run:\n│ ls', 'positive control');
    for (const blank of ['', ' ', '\u2800', '\u3000'])
      t.equal(textOf(`ls${`\n${blank}`.repeat(60)}\ncurl`), `run:\n│ ls\n│ ⏎ × 61\n│ curl\nlength: 62 lines`);
    t.equal(textOf('a\u034fb\u202ec\u3164'), 'run:\n│ a<U+034F>b<U+202E>c<U+3164>');
  },
);
