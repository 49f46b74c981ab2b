import t from 'tap';
import { printedCall } from '../../src/agent/printed-call.ts';

const tools = ['ReadFile', 'Exec', 'mcp__files__read'];
const args = '{"command":"echo hi"}';
const call = `{"name":"Exec","arguments":${args}}`;

const notations: readonly string[] = [
  `<tool_call>\n${call}\n</tool_call>`,
  `<tool_call>\n${call}`,
  `<tool_call>\n${call}\n</tool_call>\n<tool_call>\n${call}\n</tool_call>`,
  `<tool_calls>[${call}]</tool_calls>`,
  `<function=Exec>${args}</function>`,
  '<function=Exec>\n<parameter=command>\necho hi\n</parameter>\n</function>',
  '<tool_call>\n<function=Exec>\n<parameter=command>\necho hi\n</parameter>\n</function>\n</tool_call>',
  '<seed:tool_call>\n<function=Exec>\n<parameter=command>echo hi</parameter>\n</function>\n</seed:tool_call>',
  '<tool_call>Exec\n<arg_key>command</arg_key>\n<arg_value>echo hi</arg_value>\n</tool_call>',
  `<|python_tag|>${call}`,
  `<|python_tag|>{"name":"Exec","parameters":${args}}<|eom_id|>`,
  '<|python_tag|>Exec.call(command="echo hi")',
  `[TOOL_CALLS][${call}]`,
  `[TOOL_CALLS] [${call}]</s>`,
  `[TOOL_CALLS]Exec[ARGS]${args}`,
  `[TOOL_CALLS]Exec${args}`,
  `[TOOL_CALLS]Exec[CALL_ID]abc123def[ARGS]${args}`,
  `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>Exec\n\`\`\`json\n${args}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>Exec<｜tool▁sep｜>${args}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  `<｜DSML｜function_calls>\n<｜DSML｜invoke name="Exec">\n<｜DSML｜parameter name="command">echo hi</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>`,
  `<|tool_calls_section_begin|><|tool_call_begin|>functions.Exec:0<|tool_call_argument_begin|>${args}<|tool_call_end|><|tool_calls_section_end|>`,
  '<minimax:tool_call>\n<invoke name="Exec">\n<parameter name="command">echo hi</parameter>\n</invoke>\n</minimax:tool_call>',
  '<function_calls>\n<invoke name="Exec">\n<parameter name="command">echo hi</parameter>\n</invoke>\n</function_calls>',
  '<invoke name="Exec"><parameter name="command">echo hi</parameter></invoke>',
  `<|tool_call|>[${call}]<|/tool_call|>`,
  `<|tool_call|>${call}`,
  `<|START_ACTION|>[{"tool_call_id":"0","tool_name":"Exec","parameters":${args}}]<|END_ACTION|>`,
  `Action: \`\`\`json\n[{"tool_name":"Exec","parameters":${args}}]\n\`\`\``,
  `<|start|>assistant<|channel|>commentary to=functions.Exec <|constrain|>json<|message|>${args}<|call|>`,
  `<|channel|>commentary to=functions.Exec<|message|>${args}`,
  `commentary to=functions.Exec json${args}`,
  `<TOOLCALL>[${call}]</TOOLCALL>`,
  `functools[${call}]`,
  `>>>Exec\n${args}`,
  '```tool_code\nprint(Exec(command="echo hi"))\n```',
  '<|tool_call_start|>[Exec(command="echo hi")]<|tool_call_end|>',
  '[Exec(command="echo hi")]',
  '<start_function_call>call:Exec{command:<escape>echo hi<escape>}<end_function_call>',
  `<|tools_prefix|>[{"Exec": ${args}}]<|tools_suffix|>`,
  `Action: Exec\nAction Input: ${args}`,
  `\`\`\`json\n${call}\n\`\`\``,
  call,
  `[${call}]`,
  `{"type":"function","function":{"name":"Exec","arguments":"{}"}}`,
  `{"tool_calls":[{"function":{"name":"Exec","arguments":{}}}]}`,
  `{"function":"Exec","parameters":${args}}`,
];

t.test('an answer that is a call of an offered tool is recognised in every notation', async (t) => {
  for (const text of notations) {
    t.equal(printedCall(text, tools), 'Exec', text);
    t.equal(printedCall(`\n ${text}\n\n`, tools), 'Exec', `with blank lines: ${text}`);
  }
  t.equal(printedCall('{"name":"mcp__files__read","arguments":{}}', tools), 'mcp__files__read');
  t.equal(printedCall('{"name":"read_file","arguments":{}}', tools), 'ReadFile', 'another spelling');
});

t.test('other answers are not taken for a call', async (t) => {
  for (const text of notations) {
    t.equal(printedCall(text, ['ReadFile']), undefined, `not offered: ${text}`);
    t.equal(printedCall(text, []), undefined);
    t.equal(printedCall(`A model would write this:\n${text}`, tools), undefined, `words before: ${text}`);
    t.equal(printedCall(`${text}\n\nThis is how a call looks.`, tools), undefined, `words behind: ${text}`);
  }
  for (const text of [
    '',
    'Exec',
    '{"name":"Exec"}',
    '{"name":"Exec","age":4}',
    '[1]',
    '{}',
    '```\nExec\n```',
    'The Exec tool runs commands.',
  ])
    t.equal(printedCall(text, tools), undefined, text);
});
