/** Repositories in Python, tested with unittest of the standard library. */
import { join } from 'node:path';
import { changeAndTest, read, run } from '../model.ts';
import type { Conversation, Task, Work } from '../task.ts';
import { text } from '../text.ts';

const test = 'python3 -B -m unittest 2>&1';
const fix = 'A test of this project fails. Find the cause, fix it, and run the tests.';

const mean = text`
    def mean(values):
        total = 0
        for value in values:
            total += value
        return total // len(values)
`;
const meanTest = text`
    import unittest
    from mean import mean

    class Mean(unittest.TestCase):
        def test_a_mean_may_be_a_fraction(self):
            self.assertEqual(mean([1, 2]), 1.5)
`;

const account = text`
    class Account:
        def __init__(self):
            self.balance = 0
            self.log = []

        def withdraw(self, amount):
            if amount > 0:
                if amount >= self.balance:
                    self.log.append("refused")
                    return False
                self.balance -= amount
            return True
`;
const accountTest = text`
    import unittest
    from account import Account

    class Withdraw(unittest.TestCase):
        def test_all_of_the_money_can_be_withdrawn(self):
            account = Account()
            account.balance = 5
            self.assertTrue(account.withdraw(5))
            self.assertEqual(account.balance, 0)
            self.assertEqual(account.log, ["withdrawn"])
            self.assertTrue(account.withdraw(0))
            self.assertEqual(account.log, ["withdrawn"])
`;

const words = text`
    def count(text):
        counts = {}
        for word in text.split(" "):
            word = word.lower()
            counts[word] = counts.get(word, 0) + 1
        return counts
`;
const wordsTest = text`
    import unittest
    from words import count

    class Count(unittest.TestCase):
        def test_any_blank_separates(self):
            self.assertEqual(count("a  b\na"), {"a": 2, "b": 1})
`;

const settings = text`
    import os

    def home():
        return os.path.join(os.environ["VIRTUAL_ENV"], "share")

    def name():
        return "deafult"
`;
const settingsTest = text`
    import os
    import unittest
    from settings import home, name

    class Settings(unittest.TestCase):
        def test_the_environment_of_the_project_is_used(self):
            self.assertTrue(home().endswith(".venv/share"))
            self.assertEqual(name(), "default")
`;

const table = [
  'WIDTHS = {  ',
  '    "name": 10,  ',
  '    "size": 80,  ',
  '}',
  '',
  'def width(column):',
  '    return WIDTHS[column]',
  '',
].join('\n');
const tableTest = text`
    import unittest
    from table import width

    class Width(unittest.TestCase):
        def test_the_size_has_eight_characters(self):
            self.assertEqual(width("size"), 8)
`;

const tree = text`
    def depth(node):
        deepest = 0
        for child in node.get("children", []):
            deepest = max(deepest, depth(child))
        return deepest

    def names(node):
        found = [node["name"]]
        for child in node.get("children", []):
            found.append(names(child))
        return found
`;
const treeTest = text`
    import unittest
    from tree import depth, names

    TREE = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}

    class Tree(unittest.TestCase):
        def test_a_leaf_is_one_deep(self):
            self.assertEqual(depth(TREE), 3)

        def test_names_are_one_list(self):
            self.assertEqual(names(TREE), ["a", "b", "c"])
`;

const dates = text`
    def days_in(month, year):
        leap = year % 4 == 0
        if month == 2:
            return 29 if leap else 28
        return 30 if month in (4, 6, 9, 11) else 31
`;
const datesTest = text`
    import unittest
    from dates import days_in

    class Days(unittest.TestCase):
        def test_1900_was_no_leap_year(self):
            self.assertEqual(days_in(2, 1900), 28)
            self.assertEqual(days_in(2, 2000), 29)
            self.assertEqual(days_in(2, 2024), 29)
`;

/** A script in /tmp of one call is run by the next. */
function* workWithScript(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('dates.py')];
  const script = 'import sys; sys.path.insert(0, "."); from dates import days_in; print("probe", days_in(2, 1900))';
  yield [run(`cat > /tmp/lab_probe.py <<'EOF'\n${script}\nEOF`)];
  yield [run('python3 -B /tmp/lab_probe.py; rm /tmp/lab_probe.py')];
  if (!conversation.saw(/probe 29/)) return 'The probe cannot be run.';
  return yield* changeAndTest(task);
}

const warm = text`
    #!/bin/sh
    # Fills the cache, one part at each call.
    n=$(cat .cache 2>/dev/null || echo 0)
    if [ "$n" -lt 7 ]; then echo $((n + 1)) > .cache; echo "warming up"; else echo "ready"; fi
`;
const scale = text`
    import os

    def scale(value):
        if open(".cache").read().strip() != "7":
            raise RuntimeError("the cache is cold")
        return value * 100
`;
const scaleTest = text`
    import unittest
    from scale import scale

    class Scale(unittest.TestCase):
        def test_a_kilometre_has_a_thousand_metres(self):
            self.assertEqual(scale(1), 1000)
`;

/** Waits for something that says the same until it is ready. */
function* workWithPolling(_: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('scale.py'), read('warm.sh')];
  for (let tries = 0; tries < 12; tries += 1) {
    const [state] = yield [run('./warm.sh')];
    if (state?.includes('ready')) return yield* changeAndTest(task);
  }
  return 'The cache stays cold.';
}

const catalogue = [
  ...Array.from({ length: 1500 }, (_, index) => `def price_${index}():\n    return ${(index * 37) % 1000}\n`),
  'def discount(amount):\n    return amount * 1.1\n',
  ...Array.from({ length: 300 }, (_, index) => `def tax_${index}():\n    return ${index % 20}\n`),
].join('\n');
const catalogueTest = text`
    import unittest
    from catalogue import discount

    class Discount(unittest.TestCase):
        def test_a_discount_makes_it_cheaper(self):
            self.assertEqual(round(discount(100)), 90)
`;

function* workOnLargeFile(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files; grep -n "def discount" catalogue.py')];
  const line = Number(conversation.last(/(\d+):def discount/) ?? 1);
  yield [{ kind: 'read', path: 'catalogue.py', from: line, lines: 5 }];
  return yield* changeAndTest(task);
}

const slug = text`
    import re

    def slug(title):
        """Makes a name for the address of a page.

        Letters are lower case, and blanks become dashes.
        """
        return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
`;
const slugTest = text`
    import unittest
    from slug import slug

    class Slug(unittest.TestCase):
        def test_digits_stay(self):
            self.assertEqual(slug("Top 10!"), "top-10")
`;

export const python: readonly Task[] = [
  {
    ...{ name: 'py-mean', language: 'python', probes: 'nothing unusual', prompt: fix, test },
    files: { 'mean.py': mean, 'test_mean.py': meanTest },
    changes: [{ path: 'mean.py', edits: [{ old: 'total // len', new: 'total / len' }] }],
  },
  {
    ...{
      name: 'py-dedented',
      language: 'python',
      probes: 'indentation left out where it is syntax',
      prompt: fix,
      test,
    },
    files: { 'account.py': account, 'test_account.py': accountTest },
    changes: [
      {
        ...{ path: 'account.py', slip: 'dedented' },
        edits: [
          {
            old: '            if amount >= self.balance:\n                self.log.append("refused")\n                return False\n            self.balance -= amount',
            new: '            if amount > self.balance:\n                self.log.append("refused")\n                return False\n            self.balance -= amount\n            self.log.append("withdrawn")',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'py-line-numbers', language: 'python', probes: 'line numbers copied along', prompt: fix, test },
    files: { 'words.py': words, 'test_words.py': wordsTest },
    changes: [
      {
        ...{ path: 'words.py', slip: 'lineNumbers' },
        edits: [
          {
            old: '    for word in text.split(" "):\n        word = word.lower()',
            new: '    for word in text.split():\n        word = word.lower()',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'py-environment', language: 'python', probes: 'VIRTUAL_ENV of the shell', prompt: fix, test },
    files: { 'settings.py': settings, 'test_settings.py': settingsTest },
    changes: [{ path: 'settings.py', edits: [{ old: '"deafult"', new: '"default"' }] }],
    env: (workspace) => ({ VIRTUAL_ENV: join(workspace, '.venv') }),
  },
  {
    ...{ name: 'py-trailing-blanks', language: 'python', probes: 'blanks at line ends', prompt: fix, test },
    files: { 'table.py': table, 'test_table.py': tableTest },
    changes: [
      {
        ...{ path: 'table.py', slip: 'noTrailingBlanks' },
        edits: [{ old: '    "name": 10,  \n    "size": 80,  \n}', new: '    "name": 10,  \n    "size": 8,\n}' }],
      },
    ],
  },
  {
    ...{
      name: 'py-several-edits',
      language: 'python',
      probes: 'several edits with tabs for blanks',
      prompt: fix,
      test,
    },
    files: { 'tree.py': tree, 'test_tree.py': treeTest },
    changes: [
      {
        ...{ path: 'tree.py', slip: 'tabsForBlanks' },
        edits: [
          {
            old: '        deepest = max(deepest, depth(child))\n    return deepest\n',
            new: '        deepest = max(deepest, depth(child))\n    return deepest + 1\n',
          },
          {
            old: '        found.append(names(child))\n    return found',
            new: '        found.extend(names(child))\n    return found',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'py-newlines', language: 'python', probes: 'line breaks written as \\n', prompt: fix, test },
    files: { 'slug.py': slug, 'test_slug.py': slugTest },
    changes: [
      {
        ...{ path: 'slug.py', slip: 'writtenOutNewlines' },
        edits: [
          {
            old: '    Letters are lower case, and blanks become dashes.\n    """\n    return re.sub(r"[^a-z]+"',
            new: '    Letters are lower case, and all but letters and digits become dashes.\n    """\n    return re.sub(r"[^a-z0-9]+"',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'py-tmp', language: 'python', probes: '/tmp from one call to the next', prompt: fix, test },
    files: { 'dates.py': dates, 'test_dates.py': datesTest },
    changes: [
      {
        path: 'dates.py',
        edits: [{ old: 'year % 4 == 0', new: 'year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)' }],
      },
    ],
    work: workWithScript,
  },
  {
    ...{ name: 'py-waiting', language: 'python', probes: 'the same call until it is ready', test },
    prompt: 'A test of this project fails. Warm up the cache with ./warm.sh until it is ready, then fix the code.',
    files: { 'scale.py': scale, 'warm.sh': warm, 'test_scale.py': scaleTest, '.gitignore': '.cache\n' },
    changes: [{ path: 'scale.py', edits: [{ old: 'value * 100', new: 'value * 1000' }] }],
    work: workWithPolling,
  },
  {
    ...{ name: 'py-large-file', language: 'python', probes: 'a place in a file of 5400 lines', prompt: fix, test },
    files: { 'catalogue.py': catalogue, 'test_catalogue.py': catalogueTest },
    changes: [{ path: 'catalogue.py', edits: [{ old: 'amount * 1.1', new: 'amount * 0.9' }] }],
    work: workOnLargeFile,
  },
];
