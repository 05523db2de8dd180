//! Enums that are serialised as a kind followed by its fields, and deserialised without buffering.
//!
//! The kind is read first, and the fields are then read directly as their types. The code that
//! serde derives for an internally tagged enum buffers all fields first, which takes a third of the
//! time to read an event.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{CowStrDeserializer, MapAccessDeserializer, MapDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

/// Name of the field with the kind. It is written first.
const KIND: &str = "type";

/// An enum whose kinds have different fields.
pub(super) trait FromKind: Sized {
    /// Whether the enum has this kind.
    fn has(kind: &str) -> bool;

    /// Deserialises the fields of this kind.
    fn from_kind<'de, M: MapAccess<'de>>(kind: Kind<'de, M>) -> Result<Self, M::Error>;
}

/// Deserialises a kind and its fields.
pub(super) fn deserialize_kind<'de, T: FromKind, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(KindVisitor(PhantomData))
}

struct KindVisitor<T>(PhantomData<T>);

impl<'de, T: FromKind> Visitor<'de> for KindVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fact or a delta")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<T, M::Error> {
        let Some(BorrowedText(first)) = map.next_key()? else {
            return Err(Error::missing_field(KIND));
        };
        if first == KIND {
            let BorrowedText(kind) = map.next_value()?;
            return T::from_kind(Kind { kind, fields: map });
        }
        // Another writer put the kind later: buffer all fields to find it.
        let mut fields = Map::new();
        fields.insert(first.into_owned(), map.next_value()?);
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            fields.insert(name, value);
        }
        let kind = match fields.remove(KIND) {
            Some(Value::String(kind)) => kind,
            _ => return Err(Error::missing_field(KIND)),
        };
        let fields = MapDeserializer::<_, serde_json::Error>::new(fields.into_iter());
        T::from_kind(Kind { kind: kind.into(), fields }).map_err(Error::custom)
    }
}

/// A field name or a kind, borrowed from the input where possible.
#[derive(Deserialize)]
#[serde(transparent)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// A kind and its unread fields, which serde deserialises as an enum.
pub(super) struct Kind<'de, M> {
    kind: Cow<'de, str>,
    fields: M,
}

impl<M> Kind<'_, M> {
    pub(super) fn name(&self) -> &str {
        &self.kind
    }
}

impl<'de, M: MapAccess<'de>> Deserializer<'de> for Kind<'de, M> {
    type Error = M::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, M::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, M: MapAccess<'de>> EnumAccess<'de> for Kind<'de, M> {
    type Error = M::Error;
    type Variant = Fields<M>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Fields<M>), M::Error> {
        Ok((seed.deserialize(CowStrDeserializer::new(self.kind))?, Fields(self.fields)))
    }
}

/// The unread fields of a kind.
pub(super) struct Fields<M>(M);

impl<'de, M: MapAccess<'de>> VariantAccess<'de> for Fields<M> {
    type Error = M::Error;

    fn unit_variant(mut self) -> Result<(), M::Error> {
        while self.0.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn newtype_variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<V::Value, M::Error> {
        seed.deserialize(MapAccessDeserializer::new(self.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, M::Error> {
        Err(Error::invalid_type(Unexpected::Map, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, M::Error> {
        visitor.visit_map(self.0)
    }
}

/// Declares an enum of kinds. The JSON name precedes each variant. The name of the enum is given
/// twice, the second time as a string literal.
macro_rules! kinds {
    ($(#[$meta:meta])* pub enum $name:ident as $name_literal:tt {
        $(
            $(#[doc = $doc:literal])*
            $kind:literal => $variant:ident $({ $($fields:tt)* })? $(($($content:tt)*))?,
        )*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        pub enum $name {
            $(
                $(#[doc = $doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields)* })? $(($($content)*))?,
            )*
        }

        const _: () = {
            use serde::de::{Deserialize, Deserializer, MapAccess};
            use $crate::event::kinds::{FromKind, Kind, deserialize_kind};

            #[derive(serde::Deserialize)]
            #[serde(remote = $name_literal, rename_all_fields = "camelCase")]
            enum Kinds {
                $(
                    #[serde(rename = $kind)]
                    $variant $({ $($fields)* })? $(($($content)*))?,
                )*
            }

            impl FromKind for $name {
                fn has(kind: &str) -> bool {
                    matches!(kind, $($kind)|*)
                }

                fn from_kind<'de, M: MapAccess<'de>>(kind: Kind<'de, M>) -> Result<Self, M::Error> {
                    Kinds::deserialize(kind)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserialize_kind(deserializer)
                }
            }
        };
    };
}

/// Declares an enum that groups enums of kinds. Its JSON is that of the inner enum. A kind must be
/// in one of them only.
macro_rules! groups {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident($inner:ty),)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(untagged)]
        pub enum $name {
            $($(#[$doc])* $variant($inner),)*
        }

        $(impl From<$inner> for $name {
            fn from(content: $inner) -> Self {
                Self::$variant(content)
            }
        })*

        const _: () = {
            use serde::de::{Deserialize, Deserializer, Error, MapAccess};
            use $crate::event::kinds::{FromKind, Kind, deserialize_kind};

            impl FromKind for $name {
                fn has(kind: &str) -> bool {
                    $(<$inner>::has(kind))||*
                }

                fn from_kind<'de, M: MapAccess<'de>>(kind: Kind<'de, M>) -> Result<Self, M::Error> {
                    $(if <$inner>::has(kind.name()) {
                        return <$inner>::from_kind(kind).map(Self::$variant);
                    })*
                    Err(Error::custom(format_args!("unknown kind of event `{}`", kind.name())))
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserialize_kind(deserializer)
                }
            }
        };
    };
}

pub(super) use {groups, kinds};
