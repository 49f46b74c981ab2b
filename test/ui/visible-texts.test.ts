/** Foreign texts on every view of the page: the marks in them are shown, not obeyed. */
import { h } from 'preact';
import t from 'tap';
import { showTextsVisibly } from '../../src/ui/app/visible-texts.ts';

showTextsVisibly();

const props = (node: { readonly props: object }) => node.props as Record<string, unknown>;

t.test('a text with hidden marks is spelled out, wherever it stands', async (t) => {
  const name = 'invoice\u202Efdp.exe';
  const spelled = 'invoice<U+202E>fdp.exe';
  t.equal(props(h('td', null, name))['children'], spelled);
  t.same(props(h('td', null, 'Thread ', name, 3))['children'], ['Thread ', spelled, 3]);
  t.equal(props(h(() => null, null, name))['children'], spelled, 'handed to a component');
  for (const attribute of ['title', 'aria-label', 'alt', 'placeholder']) {
    t.equal(props(h('td', { [attribute]: name }))[attribute], spelled);
  }
});

t.test('other texts, line ends and values are not changed', async (t) => {
  const children = ['a\n\tb', 'שלום 👩‍💻', null, 4];
  t.same(props(h('pre', null, ...children))['children'], children);
  t.equal(props(h('input', { value: 'a\u202Eb' }))['value'], 'a\u202Eb', 'the value of a field is what it sends');
});
