import fc from 'fast-check';
import t from 'tap';
import { appendElement, setMember } from '../../src/lib/index.ts';

t.test('a change of a JSON document leaves the rest of the text unchanged', async (t) => {
  const key = fc.string().filter((each) => each !== '__proto__');
  const { tree } = fc.letrec((tie) => ({
    tree: fc.dictionary(key, fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('tree'), fc.array(tie('leaf')))),
    leaf: fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
  }));
  const layout = fc.constantFrom(undefined, 1, 2, 4, '\t');
  fc.assert(
    fc.property(
      tree,
      layout,
      key,
      key,
      fc.jsonValue(),
      fc.boolean(),
      (document, indent, section, name, value, crlf) => {
        const plain = JSON.stringify(document, null, indent);
        const source = crlf ? plain.replaceAll('\n', '\r\n') : plain;
        const expected = JSON.parse(source);
        const inside = expected[section];
        const isObject = typeof inside === 'object' && inside !== null && !Array.isArray(inside);
        expected[section] = { ...(isObject ? inside : {}), [name]: value };
        const changed = setMember(source, [section, name], value);
        if (JSON.stringify(JSON.parse(changed)) !== JSON.stringify(JSON.parse(JSON.stringify(expected)))) return false;
        delete expected[section][name];
        const removed = setMember(changed, [section, name], undefined);
        return JSON.stringify(JSON.parse(removed)) === JSON.stringify(JSON.parse(JSON.stringify(expected)));
      },
    ),
    { numRuns: 500 },
  );
  const source = '\ufeff{ "a": [1,  2],\t"s": {"x": {"}": "\\"{"}, "y": 1.50}, "z": null }\n';
  t.equal(setMember(source, ['s', 'x'], undefined), '\ufeff{ "a": [1,  2],\t"s": {"y": 1.50}, "z": null }\n');
  t.equal(setMember(source, ['s', 'y'], 2), source.replace('1.50', '2'));
  t.equal(setMember(source, ['s', 'none'], undefined), source);
  t.equal(setMember(source, ['none', 'x'], undefined), source);
});

t.test('of two equal keys the later one is changed, because parsers read that one', async (t) => {
  const source = '{"a":{"x":1},"a":{"x":2,"x":3}}';
  t.equal(setMember(source, ['a', 'x'], 4), '{"a":{"x":1},"a":{"x":2,"x":4}}');
  t.equal(setMember(source, ['a', 'y'], 4), '{"a":{"x":1},"a":{"x":2,"x":3,\n    "y": 4}}');
});

t.test('an element is added to a list in the layout that the list has', async (t) => {
  t.equal(appendElement('{"a":{"list":[1, 2 ]}}', ['a', 'list'], 3), '{"a":{"list":[1, 2, 3 ]}}');
  const lines = '{\r\n\t"list": [\r\n\t\t1\r\n\t],\r\n\t"b": 1\r\n}\r\n';
  t.equal(
    appendElement(lines, ['list'], { c: 2 }),
    '{\r\n\t"list": [\r\n\t\t1,\r\n\t\t{\r\n\t\t\t"c": 2\r\n\t\t}\r\n\t],\r\n\t"b": 1\r\n}\r\n',
  );
});

t.test('a list that is missing, empty or another value is replaced by one of the element', async (t) => {
  t.equal(appendElement('{}', ['a', 'list'], 1), '{\n  "a": {\n    "list": [\n      1\n    ]\n  }\n}');
  for (const text of ['{"list":[]}', '{"list":[ ]}', '{"list":null}', '{"list":{"0":1}}'])
    t.same(JSON.parse(appendElement(text, ['list'], 1)), { list: [1] }, text);
});
