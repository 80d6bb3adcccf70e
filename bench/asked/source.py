"""Source code in ten languages: a fact is a constant in a function's body or signature."""

from __future__ import annotations

from string import Template
from typing import NamedTuple

from asked.facts import Content, Fact
from asked.words import Words, cased


class Language(NamedTuple):
    """``shapes``: functions, with ``$f`` their name, ``$k`` the constant, ``$d`` a comment, ``$a``
    to ``$c`` names and ``$n`` a number; ``top`` and ``end`` enclose them."""

    case: str
    suffix: str
    top: str
    end: str
    shapes: tuple[str, ...]


PYTHON = Language("snake", ".py", "import json\nfrom decimal import Decimal\n\n", "", (
    'def $f($a, $b):\n    """$d"""\n    if not $a:\n        return None\n'
    "    $c = [one for one in $a if one.$b > $n]\n    return len($c) * $k\n\n",
    "def $f($a, limit=$k):\n    # $d\n    total = 0\n    for $b in $a:\n        total += $b.$c\n"
    "        if total > limit:\n            break\n    return total\n\n",
    'async def $f(client, $a: str) -> dict[str, int]:\n    """$d"""\n'
    "    answer = await client.get($a, timeout=$n)\n    if answer.status == 404:\n"
    "        return {}\n    $b = answer.json()\n    return {'$c': $b['$c'] + $k}\n\n",
    "def $f(\n    $a: Decimal,\n    $b: int = $n,\n) -> Decimal:\n    $c = $a * $b\n"
    "    while $c > $k:\n        $c -= $b\n    return $c\n\n",
))  # fmt: skip
TYPESCRIPT = Language("camel", ".ts", 'import { client } from "./client";\n\n', "", (
    "/** $d */\nexport function $f($a: string, $b = $n): number {\n"
    "  const $c = $a.trim().length;\n  if ($c === 0) {\n    return $b;\n  }\n"
    "  return $c * $k;\n}\n\n",
    "export const $f = async ($a: Item[]): Promise<number> => {\n"
    "  const $b = await client.load($a);\n  return $b\n    .filter((one) => one.$c > $k)\n"
    "    .reduce((sum, one) => sum + one.$c, $n);\n};\n\n",
    "function $f($a: Map<string, number>, limit: number = $k): string[] {\n  // $d\n"
    "  const $b: string[] = [];\n  for (const [key, value] of $a) {\n"
    "    if (value > limit) $b.push(key);\n  }\n  return $b;\n}\n\n",
))  # fmt: skip
JAVASCRIPT = Language("camel", ".js", 'const { client } = require("./client");\n\n', "", (
    "// $d\nfunction $f($a, $b) {\n  const $c = $a.map((one) => one.$b);\n"
    "  if (!$c.length) return null;\n  return Math.min(...$c) + $k;\n}\n\n",
    "exports.$f = async function ($a) {\n  const $b = await client.get(`/$c/${$a}`);\n"
    "  if ($b.status !== 200) {\n    throw new Error('$c');\n  }\n"
    "  return $b.body.$c || $k;\n};\n\n",
    "const $f = ($a, limit = $k) => {\n  let $b = $n;\n  while ($b < limit) {\n"
    "    $b += $a.$c;\n  }\n  return $b;\n};\n\n",
))  # fmt: skip
GO = Language("Pascal", ".go", 'package main\n\nimport (\n\t"errors"\n\t"time"\n)\n\n', "", (
    "// $f: $d\nfunc $f($a []int) (int, error) {\n\tif len($a) == 0 {\n"
    '\t\treturn 0, errors.New("no $b")\n\t}\n\t$c := 0\n\tfor _, one := range $a {\n'
    "\t\t$c += one\n\t}\n\treturn $c * $k, nil\n}\n\n",
    "func (s *Store) $f($a string) time.Duration {\n\t$b, ok := s.$c[$a]\n\tif !ok {\n"
    "\t\treturn $k * time.Millisecond\n\t}\n\treturn $b\n}\n\n",
    "func $f($a, $b int) bool {\n\t$c := $a - $b\n\tif $c < $n {\n\t\treturn false\n\t}\n"
    "\treturn $c%$k == 0\n}\n\n",
))  # fmt: skip
RUST = Language("snake", ".rs", "use std::collections::HashMap;\n\n", "", (
    "/// $d\npub fn $f($a: &[u64], $b: u64) -> Option<u64> {\n    if $a.is_empty() {\n"
    "        return None;\n    }\n    let $c: u64 = $a.iter().sum();\n"
    "    Some($c * $b + $k)\n}\n\n",
    "fn $f($a: &HashMap<String, i64>) -> Vec<String> {\n    $a.iter()\n"
    "        .filter(|(_, $b)| **$b > $k)\n        .map(|($c, _)| $c.clone())\n"
    "        .collect()\n}\n\n",
    "pub async fn $f($a: &Client) -> Result<i64, Error> {\n    let $b = $a.load($n).await?;\n"
    "    match $b.$c {\n        0 => Ok($k),\n        other => Ok(other),\n    }\n}\n\n",
))  # fmt: skip
JAVA = Language(
    "camel", ".java", "package com.example;\n\nimport java.util.List;\n\npublic class Desk {\n\n",
    "}\n", (
    "    /** $d */\n    public int $f(List<Integer> $a, int $b) {\n        int $c = $b;\n"
    "        for (int one : $a) {\n            $c += one;\n        }\n"
    "        return $c > $n ? $c : $k;\n    }\n\n",
    "    private static long $f(String $a) {\n        if ($a.isEmpty()) {\n"
    '            throw new IllegalArgumentException("$b");\n        }\n'
    "        return $a.hashCode() % $k;\n    }\n\n",
    "    boolean $f(long $a, long $b) {\n        long $c = $a / $n;\n"
    "        return $c - $b < $k;\n    }\n\n",
))  # fmt: skip
C = Language("snake", ".c", '#include <stdio.h>\n#include "desk.h"\n\n', "", (
    "/* $d */\nint $f(const int *$a, size_t $b)\n{\n    int $c = 0;\n"
    "    for (size_t i = 0; i < $b; i++) {\n        $c += $a[i];\n    }\n"
    "    return $c % $k;\n}\n\n",
    "static long $f(struct $a *$b)\n{\n    if (!$b || $b->$c < $n)\n        return -1;\n"
    "    return $b->$c << 2 | $k;\n}\n\n",
    "void $f(char *$a)\n{\n    unsigned $b = $k;\n    while (*$a++) {\n"
    "        $b ^= (unsigned)*$a;\n    }\n    set_$c($b);\n}\n\n",
))  # fmt: skip
CPP = Language("camel", ".cpp", '#include <vector>\n#include "desk.hpp"\n\nnamespace desk {\n\n',
    "}  // namespace desk\n", (
    "// $d\nint $f(const std::vector<int>& $a, int $b = $k) {\n  int $c = $n;\n"
    "  for (auto one : $a) {\n    $c += one * $b;\n  }\n  return $c;\n}\n\n",
    "template <typename T>\nauto Store<T>::$f(const T& $a) -> std::size_t {\n"
    "  auto $b = ${c}_.find($a);\n  if ($b == ${c}_.end()) {\n    return $k;\n  }\n"
    "  return $b->second;\n}\n\n",
    "bool $f(double $a, double $b) noexcept {\n  const double $c = $a - $b;\n"
    "  return $c * $n > $k;\n}\n\n",
))  # fmt: skip
RUBY = Language("snake", ".rb", "require 'json'\n\nmodule Desk\n", "end\n", (
    "  # $d\n  def $f($a, $b = $n)\n    return [] if $a.empty?\n\n"
    "    $a.select { |one| one.$c > $b + $k }\n  end\n\n",
    "  def self.$f($a:, limit: $k)\n    $b = $a.sum(&:$c)\n    raise ArgumentError if $b > limit\n"
    "    $b\n  end\n\n",
    "  def $f($a)\n    case $a\n    when nil then $k\n    when Hash then $a[:$b]\n"
    "    else $a.$c\n    end\n  end\n\n",
))  # fmt: skip
PHP = Language("camel", ".php", "<?php\n\nnamespace Desk;\n\nclass Desk\n{\n", "}\n", (
    "    /** $d */\n    public function $f(array $$$a, int $$$b = $n): int\n    {\n"
    "        $$$c = array_sum($$$a);\n        if ($$$c < $$$b) {\n            return $k;\n"
    "        }\n        return $$$c;\n    }\n\n",
    "    private function $f(string $$$a): ?string\n    {\n"
    "        $$$b = $$this->$c[$$$a] ?? null;\n"
    "        return $$$b === null ? null : substr($$$b, 0, $k);\n    }\n\n",
    "    public static function $f(float $$$a, float $$limit = $k): bool\n    {\n        // $d\n"
    "        return round($$$a, 2) * $n > $$limit;\n    }\n\n",
))  # fmt: skip
LANGUAGES = {
    "python": PYTHON, "typescript": TYPESCRIPT, "javascript": JAVASCRIPT, "go": GO, "rust": RUST,
    "java": JAVA, "c": C, "c++": CPP, "ruby": RUBY, "php": PHP,
}  # fmt: skip
ASKED = ("the constant in {}", "which number {} uses", "the number in the function {}",
         "what {} works with: its constant")  # fmt: skip


def source(language: Language, words: Words, size: float = 1.0) -> Content:
    """A file of some seventy functions."""
    parts, facts = [language.top], list[Fact]()
    for _ in range(int(70 * size)):
        name, value = words.identifier(language.case), words.number()
        a, b, c = words.draw.sample([words.one("noun") for _ in range(9)], 3)
        shape = words.pick(language.shapes)
        parts.append(Template(shape).safe_substitute(
            f=name, k=value, d=words.sentence(5, 12), n=words.plain(), a=a, c=c,
            b=cased([b, "of"], "snake" if language.case == "snake" else "camel"),
        ))  # fmt: skip
        facts.append(Fact(name, value, words.pick(ASKED).format(name)))
    return Content("".join(parts).rstrip() + f"\n{language.end}", tuple(facts), "lines",
                   words.path(language.suffix))  # fmt: skip
